"""Lagrangian relaxation: multipliers, step rules, fixing, branching, linear programs and constraints."""
