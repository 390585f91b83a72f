"""The rubric of solidity_audit's judges: in which order a class is decided, and what each level of a score asks for."""

CLASSES = """
Decide the class of a finding in this order, and stop at the first that holds:
   - The code, function or behaviour that it names is not in the contract: HALLUCINATED.{target}
   - It needs something to fail first that the attacker does not control, such as another contract, a wallet, a compiler
     or an operator: OUT_OF_SCOPE.
   - It complains about a right, a limit or a trust that the contract states as its purpose: DESIGN_CHOICE.
   - Somebody without special rights gains by it or makes others lose something, and you can name who, by which
     calls of this very code, from which state, and what. All four are there and no check stops it: BONUS_VALID.
   - It reads harmless code wrongly, for instance misses a check that is there: MISCHARACTERIZED.
   - It names a known pattern without saying how it would be used here, or the use fails: SECURITY_THEATER.
   - Anything else, such as style, gas, events, tests, documentation: INFORMATIONAL.
These are never a BONUS_VALID by themselves: an owner who could misbehave; an old or floating compiler version; a
missing event, zero address check or comment; block.timestamp used for hours or days; the approve race of ERC-20;
precision lost within one unit; high gas; a library that could be used; a call to an outside contract that is made after
all state was written.
"""

TARGET_CLASSES = """
   - It is the same flaw at the same place as the target, whatever it is called: TARGET_MATCH.
   - It names the target's place with another or an incomplete cause, or its cause without a place: PARTIAL_MATCH."""

SCORES = """
Score by these levels; a value between two levels says that the lower one is wholly reached and the upper one in part.
Length, tone, a correct type and a high severity count for nothing. Judge only what the audit writes down.
   root cause     0.00  no cause, or one that has nothing to do with the flaw
                  0.25  a symptom or a general class ("the function is unsafe", "missing validation")
                  0.50  the right mechanism in general, not tied to the statement, variable or order that is at fault
                  0.75  the statement or missing check at fault, with a gap in why it matters
                  1.00  the statement at fault and why it leads to the harm, without error
                  Example: withdraw pays before it writes the balance. "The compiler is old" 0.00; "reentrancy risk"
                  0.25; "external call before the state changes" 0.50; "the call in withdraw precedes
                  balances[msg.sender] -= amount" 0.75; the same with "so a nested withdraw passes the balance check
                  again" 1.00.
   attack vector  0.00  none, or one that cannot work
                  0.25  who attacks or what is gained, without a way
                  0.50  the decisive call, without the state or the steps that it needs
                  0.75  steps that work but for one omission that a reader can fill in
                  1.00  steps from a stated beginning to the loss, each of which the code permits
                  Example: "the owner calls withdraw with another's address" 0.00, for it takes none; "an attacker can
                  drain funds" 0.25; "calls withdraw from its fallback" 0.50; "deposits, withdraws, and withdraws
                  again from its receive function" 0.75; with the loop's end and the loss 1.00.
   fix            0.00  none, or one that leaves the flaw or breaks the contract
                  0.25  a direction ("add checks", "use best practices")
                  0.50  stops the described way but leaves another to the same flaw
                  0.75  would work, with a detail missing or wrong that a developer would notice
                  1.00  removes the flaw as it stands, at the right place
                  Example: "check the result of the call" 0.00; "be careful with external calls" 0.25; "limit gas with
                  transfer" 0.50; "use a lock" 0.75 where another function shares the state; "write the balance
                  before the call" 1.00.
"""
