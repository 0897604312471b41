"""Evidence that holds at every look: bets whose wealth rarely grows if a hypothesis is true.

Pure functions of arrays, independent of agents. Rollouts bet on randomly assigned arms, and evaluations on
paired differences.
"""
