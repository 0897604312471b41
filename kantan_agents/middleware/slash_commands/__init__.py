"""``SlashCommands``: tools that a person runs directly, without the model."""
