"""Evidence that holds at every look: bets whose wealth rarely grows if a hypothesis is true.

Pure functions of arrays, which know nothing of agents. Rollouts bet on arms that were drawn at random, and
evaluations on paired differences.
"""
