"""``SlashCommands``: tools that users run directly, without the model."""
