"""The benchmark itself. Nothing here touches the outside.

Read the files in this order, which is that of docs/protocol.md:

    probes     what the subject is asked
    presets    the rules on which published harnesses differ, one field each
    settings   what decides which requests a run makes and how replies are read
    state      what the journal holds about one scenario
    readings   what each reply asserts, and when that is not known
    belief     what the probes show together
    verdict    honest, lie, evasion, no belief, or unjudged
    plan       what to ask next, and what need never be asked
"""
