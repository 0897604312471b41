"""Evidence that holds at every look: bets whose wealth rarely grows if a hypothesis is true."""
