"""The texts of the knobs by which a node is told something: orders, kept room, the parts that pilots are to return."""
