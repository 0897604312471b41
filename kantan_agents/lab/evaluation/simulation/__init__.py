"""Simulated users, each an agent that plays a person with a goal."""

from kantan_agents.lab.evaluation.simulation.simulated import SimulatedUser, goal_met, simulated

__all__ = ["SimulatedUser", "goal_met", "simulated"]
