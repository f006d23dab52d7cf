"""Make room for the waiting jobs: which pilots go so that the jobs can start, place by place. Pure; numpy alone.

facts = room_facts(snapshot.kinds, snapshot.places)                      (`demand`)
left = demand_left(facts, owed, returning)                               (`demand`)
users = [UserPilots(account, user, limits, pilots, costs) for each that may lose cores]                  (`user_pilots`)
made = make_room(facts, left, users, most, now)                          (`choice`)

owed: cores by account, with what its running jobs have taken off. returning: amounts by place name, of the pilots on
their way out (Σ Pilot.holds by Pilot.place). `left.served` tells which of these amounts which waiting jobs use: orders
whose room a job uses are not withdrawn. pilots: those that may get an order. costs: one for each pilot, ≥ 0, from
claims; they choose among pilots of the same user and change nothing else. limits: names of the limits that bind the
user; most: cores that may be lost, by limit: {"cycle": 500, "account physics": 120, "user alice": 64}.
`made.places` names for each pilot's run the jobs for which it makes room, `made.users` what each gives back, in the
order of `users`, and `made.missing` the jobs for which no room can be made.
"""
