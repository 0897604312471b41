"""What all commands share: the console, tables, texts from outside, inputs, quantities, exit codes."""
