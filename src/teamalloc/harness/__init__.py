"""Runs a plan with real agents. Empty in this version: ``allocate --save`` writes plans already."""
