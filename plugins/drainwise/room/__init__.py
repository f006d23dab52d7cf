"""Make room for the waiting jobs: which pilots go so that the jobs can start, place by place. Pure; numpy alone.

facts = room_facts(snapshot.kinds, snapshot.places)                      (`demand`)
left = demand_left(facts, owed, returning)                               (`demand`)
rows = rows_of(facts, pilots, user, cost, now)                           (`choice`)
made = make_room(left, rows, limits, runs)                               (`choice`)

owed: cores by account, with what its running jobs have taken off. returning: amounts by place name, of the pilots on
their way out (Σ Pilot.holds by Pilot.place). `left.served` tells which of these amounts which waiting jobs use: orders
whose room a job uses are not withdrawn. pilots: those that may get an order. cost: of each, ≥ 0, from claims; they
choose among pilots of the same user and change nothing else. limits: `reclaim.choose.problem.Limits`, what each user
may lose. `made.places` names for each pilot's run the jobs for which it makes room, and `made.missing` the jobs for
which no room can be made.
"""
