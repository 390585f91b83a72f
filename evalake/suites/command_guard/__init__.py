"""The command_guard suite: does a model, used as a shell guard, block dangerous commands and pass harmless ones?"""
