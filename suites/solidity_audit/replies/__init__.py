"""What an audit and a judgement say, read from their text."""
