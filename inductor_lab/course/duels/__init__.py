"""Duels: find the input that exposes a bug of a compiler component, or say "correct".

    inductor-lab course duel start fall ada bob --secret secret_seed
    inductor-lab course duel check fall --secret secret_seed

    components.py   what an input is, and what is wrong with a result
    bank.py         the components with and without bugs, which are not installed
    duel.py         draws a duel for each student, and judges answers
"""
