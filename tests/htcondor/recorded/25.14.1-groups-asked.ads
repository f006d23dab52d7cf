# Startd 1795259734
Cpus = 8
Name = "slot1_1@node1.pool.test"
State = "Claimed"
Memory = 128
MyType = "Machine"
Machine = "node1.pool.test"
Activity = "Busy"
JobStart = 1795259705
RemoteUser = "alice@pool.test"
SlotWeight = Cpus
GlobalJobId = "central.pool.test#4.0#1795259699"
RemoteOwner = "alice@pool.test"
PilotUsedCpu = 8.0
LastHeardFrom = 1795259733
PilotLeaseEnd = min({ MY.PilotReclaimDeadline,MY.JobStart + 172800 })
PilotWallLimit = 172800
PilotHeartbeat = 1795259725
AccountingGroup = "group_alice.alice@pool.test"
PilotAddUncomTime = 0.0
PilotLastJobStart = 1795259705
PilotLastExpJobEnd = 1795261205
PilotLastMaxJobEnd = 1795261205
PilotFirstExpJobEnd = 1795261205
PilotPriorityFactor = 0
PilotReportStanding = "fresh"
PilotReclaimDeadline = ifThenElse(regexp(strcat(strcat("^(.* )?",replaceall("[.]",MY.GlobalJobId,"[.]"),"@",MY.JobStart,"="),"[0-9]+( |$)"),""),int(replace(" .*$",replace(strcat("^(.* )?",replaceall("[.]",MY.GlobalJobId,"[.]"),"@",MY.JobStart,"="),"",""),"")),undefined)
PilotReclaimOrders = ""
PilotAddFinalExpWaste = 0.0
PilotCanPostponeLastJob = true
RetirementTimeRemaining = 0

Cpus = 8
Name = "slot1_1@node2.pool.test"
State = "Claimed"
Memory = 128
MyType = "Machine"
Machine = "node2.pool.test"
Activity = "Retiring"
JobStart = 1795259699
RemoteUser = "alice@pool.test"
SlotWeight = Cpus
GlobalJobId = "central.pool.test#1.0#1795259699"
RemoteOwner = "alice@pool.test"
PilotUsedCpu = 8.0
LastHeardFrom = 1795259733
PilotLeaseEnd = min({ MY.PilotReclaimDeadline,MY.JobStart + 172800 })
PilotWallLimit = 172800
PilotHeartbeat = 1795259725
AccountingGroup = "group_alice.alice@pool.test"
PilotAddUncomTime = 20.0
PilotLastJobStart = 1795259725
PilotLastExpJobEnd = 1795259750
PilotLastMaxJobEnd = 1795259750
PilotFirstExpJobEnd = 1795259740
PilotPriorityFactor = 0
PilotReportStanding = "fresh"
PilotReclaimDeadline = ifThenElse(regexp(strcat(strcat("^(.* )?",replaceall("[.]",MY.GlobalJobId,"[.]"),"@",MY.JobStart,"="),"[0-9]+( |$)"),"central.pool.test#2.0#1795259699@1795259705=1795259779 central.pool.test#1.0#1795259699@1795259699=1795259779"),int(replace(" .*$",replace(strcat("^(.* )?",replaceall("[.]",MY.GlobalJobId,"[.]"),"@",MY.JobStart,"="),"central.pool.test#2.0#1795259699@1795259705=1795259779 central.pool.test#1.0#1795259699@1795259699=1795259779",""),"")),undefined)
PilotReclaimOrders = "central.pool.test#2.0#1795259699@1795259705=1795259779 central.pool.test#1.0#1795259699@1795259699=1795259779"
PilotAddFinalExpWaste = 40.0
PilotCanPostponeLastJob = true
RetirementTimeRemaining = 46

Cpus = 8
Name = "slot1_1@node3.pool.test"
State = "Claimed"
Memory = 128
MyType = "Machine"
Machine = "node3.pool.test"
Activity = "Retiring"
JobStart = 1795259705
RemoteUser = "alice@pool.test"
SlotWeight = Cpus
GlobalJobId = "central.pool.test#3.0#1795259699"
RemoteOwner = "alice@pool.test"
PilotUsedCpu = 8.0
LastHeardFrom = 1795259732
PilotLeaseEnd = min({ MY.PilotReclaimDeadline,MY.JobStart + 172800 })
PilotWallLimit = 172800
PilotHeartbeat = 1795259729
AccountingGroup = "group_alice.alice@pool.test"
PilotAddUncomTime = 12.0
PilotLastJobStart = 1795259729
PilotLastExpJobEnd = 1795259753
PilotLastMaxJobEnd = 1795259753
PilotFirstExpJobEnd = 1795259747
PilotPriorityFactor = 0
PilotReportStanding = "fresh"
PilotReclaimDeadline = ifThenElse(regexp(strcat(strcat("^(.* )?",replaceall("[.]",MY.GlobalJobId,"[.]"),"@",MY.JobStart,"="),"[0-9]+( |$)"),"central.pool.test#3.0#1795259699@1795259705=1795259779"),int(replace(" .*$",replace(strcat("^(.* )?",replaceall("[.]",MY.GlobalJobId,"[.]"),"@",MY.JobStart,"="),"central.pool.test#3.0#1795259699@1795259705=1795259779",""),"")),undefined)
PilotReclaimOrders = "central.pool.test#3.0#1795259699@1795259705=1795259779"
PilotAddFinalExpWaste = 24.0
PilotCanPostponeLastJob = true
RetirementTimeRemaining = 47

Cpus = 8
Name = "slot1_2@node1.pool.test"
State = "Claimed"
Memory = 128
MyType = "Machine"
Machine = "node1.pool.test"
Activity = "Busy"
JobStart = 1795259705
RemoteUser = "alice@pool.test"
SlotWeight = Cpus
GlobalJobId = "central.pool.test#5.0#1795259700"
RemoteOwner = "alice@pool.test"
PilotUsedCpu = 8.0
LastHeardFrom = 1795259733
PilotLeaseEnd = min({ MY.PilotReclaimDeadline,MY.JobStart + 172800 })
PilotWallLimit = 172800
PilotHeartbeat = 1795259725
AccountingGroup = "group_alice.alice@pool.test"
PilotAddUncomTime = 0.0
PilotLastJobStart = 1795259705
PilotLastExpJobEnd = 1795261505
PilotLastMaxJobEnd = 1795261505
PilotFirstExpJobEnd = 1795261505
PilotPriorityFactor = 0
PilotReportStanding = "fresh"
PilotReclaimDeadline = ifThenElse(regexp(strcat(strcat("^(.* )?",replaceall("[.]",MY.GlobalJobId,"[.]"),"@",MY.JobStart,"="),"[0-9]+( |$)"),""),int(replace(" .*$",replace(strcat("^(.* )?",replaceall("[.]",MY.GlobalJobId,"[.]"),"@",MY.JobStart,"="),"",""),"")),undefined)
PilotReclaimOrders = ""
PilotAddFinalExpWaste = 0.0
PilotCanPostponeLastJob = true
RetirementTimeRemaining = 0

Cpus = 8
Name = "slot1_2@node2.pool.test"
State = "Claimed"
Memory = 128
MyType = "Machine"
Machine = "node2.pool.test"
Activity = "Idle"
JobStart = undefined
RemoteUser = "alice@pool.test"
SlotWeight = Cpus
GlobalJobId = undefined
RemoteOwner = "alice@pool.test"
LastHeardFrom = 1795259733
PilotLeaseEnd = min({ MY.PilotReclaimDeadline,MY.JobStart + 172800 })
PilotWallLimit = 172800
AccountingGroup = "group_alice.alice@pool.test"
PilotReclaimDeadline = ifThenElse(regexp(strcat(strcat("^(.* )?",replaceall("[.]",MY.GlobalJobId,"[.]"),"@",MY.JobStart,"="),"[0-9]+( |$)"),"central.pool.test#2.0#1795259699@1795259705=1795259779 central.pool.test#1.0#1795259699@1795259699=1795259779"),int(replace(" .*$",replace(strcat("^(.* )?",replaceall("[.]",MY.GlobalJobId,"[.]"),"@",MY.JobStart,"="),"central.pool.test#2.0#1795259699@1795259705=1795259779 central.pool.test#1.0#1795259699@1795259699=1795259779",""),"")),undefined)
PilotReclaimOrders = "central.pool.test#2.0#1795259699@1795259705=1795259779 central.pool.test#1.0#1795259699@1795259699=1795259779"
RetirementTimeRemaining = 0

Cpus = 8
Name = "slot1_2@node3.pool.test"
State = "Claimed"
Memory = 128
MyType = "Machine"
Machine = "node3.pool.test"
Activity = "Busy"
JobStart = 1795259705
RemoteUser = "alice@pool.test"
SlotWeight = Cpus
GlobalJobId = "central.pool.test#7.0#1795259700"
RemoteOwner = "alice@pool.test"
PilotUsedCpu = 8.0
LastHeardFrom = 1795259732
PilotLeaseEnd = min({ MY.PilotReclaimDeadline,MY.JobStart + 172800 })
PilotWallLimit = 172800
PilotHeartbeat = 1795259725
AccountingGroup = "group_alice.alice@pool.test"
PilotAddUncomTime = 0.0
PilotLastJobStart = 1795259705
PilotLastExpJobEnd = 1795262405
PilotLastMaxJobEnd = 1795262405
PilotFirstExpJobEnd = 1795260605
PilotPriorityFactor = 0
PilotReportStanding = "fresh"
PilotReclaimDeadline = ifThenElse(regexp(strcat(strcat("^(.* )?",replaceall("[.]",MY.GlobalJobId,"[.]"),"@",MY.JobStart,"="),"[0-9]+( |$)"),"central.pool.test#3.0#1795259699@1795259705=1795259779"),int(replace(" .*$",replace(strcat("^(.* )?",replaceall("[.]",MY.GlobalJobId,"[.]"),"@",MY.JobStart,"="),"central.pool.test#3.0#1795259699@1795259705=1795259779",""),"")),undefined)
PilotReclaimOrders = "central.pool.test#3.0#1795259699@1795259705=1795259779"
PilotAddFinalExpWaste = 7200.0
PilotCanPostponeLastJob = true
RetirementTimeRemaining = 0

Cpus = 0
Name = "slot1@node1.pool.test"
State = "Unclaimed"
Memory = 48768
MyType = "Machine"
Machine = "node1.pool.test"
Activity = "Idle"
JobStart = undefined
SlotWeight = Cpus
GlobalJobId = undefined
LastHeardFrom = 1795259733
PilotLeaseEnd = min({ MY.PilotReclaimDeadline,MY.JobStart + 172800 })
PilotWallLimit = 172800
PartitionableSlot = true
PilotReclaimDeadline = ifThenElse(regexp(strcat(strcat("^(.* )?",replaceall("[.]",MY.GlobalJobId,"[.]"),"@",MY.JobStart,"="),"[0-9]+( |$)"),""),int(replace(" .*$",replace(strcat("^(.* )?",replaceall("[.]",MY.GlobalJobId,"[.]"),"@",MY.JobStart,"="),"",""),"")),undefined)
PilotReclaimOrders = ""
RetirementTimeRemaining = 0

Cpus = 0
Name = "slot1@node2.pool.test"
State = "Unclaimed"
Memory = 48768
MyType = "Machine"
Machine = "node2.pool.test"
Activity = "Idle"
JobStart = undefined
SlotWeight = Cpus
GlobalJobId = undefined
LastHeardFrom = 1795259733
PilotLeaseEnd = min({ MY.PilotReclaimDeadline,MY.JobStart + 172800 })
PilotWallLimit = 172800
PartitionableSlot = true
PilotReclaimDeadline = ifThenElse(regexp(strcat(strcat("^(.* )?",replaceall("[.]",MY.GlobalJobId,"[.]"),"@",MY.JobStart,"="),"[0-9]+( |$)"),"central.pool.test#2.0#1795259699@1795259705=1795259779 central.pool.test#1.0#1795259699@1795259699=1795259779"),int(replace(" .*$",replace(strcat("^(.* )?",replaceall("[.]",MY.GlobalJobId,"[.]"),"@",MY.JobStart,"="),"central.pool.test#2.0#1795259699@1795259705=1795259779 central.pool.test#1.0#1795259699@1795259699=1795259779",""),"")),undefined)
PilotReclaimOrders = "central.pool.test#2.0#1795259699@1795259705=1795259779 central.pool.test#1.0#1795259699@1795259699=1795259779"
RetirementTimeRemaining = 0

Cpus = 0
Name = "slot1@node3.pool.test"
State = "Unclaimed"
Memory = 48768
MyType = "Machine"
Machine = "node3.pool.test"
Activity = "Idle"
JobStart = undefined
SlotWeight = Cpus
GlobalJobId = undefined
LastHeardFrom = 1795259732
PilotLeaseEnd = min({ MY.PilotReclaimDeadline,MY.JobStart + 172800 })
PilotWallLimit = 172800
PartitionableSlot = true
PilotReclaimDeadline = ifThenElse(regexp(strcat(strcat("^(.* )?",replaceall("[.]",MY.GlobalJobId,"[.]"),"@",MY.JobStart,"="),"[0-9]+( |$)"),"central.pool.test#3.0#1795259699@1795259705=1795259779"),int(replace(" .*$",replace(strcat("^(.* )?",replaceall("[.]",MY.GlobalJobId,"[.]"),"@",MY.JobStart,"="),"central.pool.test#3.0#1795259699@1795259705=1795259779",""),"")),undefined)
PilotReclaimOrders = "central.pool.test#3.0#1795259699@1795259705=1795259779"
RetirementTimeRemaining = 0

Cpus = 8
Name = "slot1_3@node1.pool.test"
State = "Claimed"
Memory = 128
MyType = "Machine"
Machine = "node1.pool.test"
Activity = "Busy"
JobStart = 1795259705
RemoteUser = "alice@pool.test"
SlotWeight = Cpus
GlobalJobId = "central.pool.test#8.0#1795259700"
RemoteOwner = "alice@pool.test"
PilotUsedCpu = 6.0
LastHeardFrom = 1795259733
PilotLeaseEnd = min({ MY.PilotReclaimDeadline,MY.JobStart + 172800 })
PilotWallLimit = 172800
PilotHeartbeat = 1795259725
AccountingGroup = "group_alice.alice@pool.test"
PilotAddUncomTime = 0.0
PilotLastJobStart = 1795259705
PilotLastExpJobEnd = 1795262705
PilotLastMaxJobEnd = 1795262705
PilotFirstExpJobEnd = 1795262705
PilotPriorityFactor = 0
PilotReportStanding = "fresh"
PilotReclaimDeadline = ifThenElse(regexp(strcat(strcat("^(.* )?",replaceall("[.]",MY.GlobalJobId,"[.]"),"@",MY.JobStart,"="),"[0-9]+( |$)"),""),int(replace(" .*$",replace(strcat("^(.* )?",replaceall("[.]",MY.GlobalJobId,"[.]"),"@",MY.JobStart,"="),"",""),"")),undefined)
PilotReclaimOrders = ""
PilotAddFinalExpWaste = 0.0
PilotCanPostponeLastJob = true
RetirementTimeRemaining = 0

Cpus = 8
Name = "slot1_3@node2.pool.test"
State = "Claimed"
Memory = 128
MyType = "Machine"
Machine = "node2.pool.test"
Activity = "Busy"
JobStart = 1795259705
RemoteUser = "alice@pool.test"
SlotWeight = Cpus
GlobalJobId = "central.pool.test#6.0#1795259700"
RemoteOwner = "alice@pool.test"
PilotUsedCpu = 7.0
LastHeardFrom = 1795259734
PilotLeaseEnd = min({ MY.PilotReclaimDeadline,MY.JobStart + 172800 })
PilotWallLimit = 172800
PilotHeartbeat = 1795259710
AccountingGroup = "group_alice.alice@pool.test"
PilotAddUncomTime = 0.0
PilotLastJobStart = 1795259710
PilotLastExpJobEnd = 1795260910
PilotLastMaxJobEnd = 1795260910
PilotFirstExpJobEnd = 1795260910
PilotPriorityFactor = 0
PilotReportStanding = "fresh"
PilotReclaimDeadline = ifThenElse(regexp(strcat(strcat("^(.* )?",replaceall("[.]",MY.GlobalJobId,"[.]"),"@",MY.JobStart,"="),"[0-9]+( |$)"),"central.pool.test#2.0#1795259699@1795259705=1795259779 central.pool.test#1.0#1795259699@1795259699=1795259779"),int(replace(" .*$",replace(strcat("^(.* )?",replaceall("[.]",MY.GlobalJobId,"[.]"),"@",MY.JobStart,"="),"central.pool.test#2.0#1795259699@1795259705=1795259779 central.pool.test#1.0#1795259699@1795259699=1795259779",""),"")),undefined)
PilotReclaimOrders = "central.pool.test#2.0#1795259699@1795259705=1795259779 central.pool.test#1.0#1795259699@1795259699=1795259779"
PilotAddFinalExpWaste = 0.0
PilotCanPostponeLastJob = true
RetirementTimeRemaining = 0

Cpus = 8
Name = "slot1_3@node3.pool.test"
State = "Claimed"
Memory = 128
MyType = "Machine"
Machine = "node3.pool.test"
Activity = "Busy"
JobStart = 1795259705
RemoteUser = "alice@pool.test"
SlotWeight = Cpus
GlobalJobId = "central.pool.test#9.0#1795259700"
RemoteOwner = "alice@pool.test"
PilotUsedCpu = 8.0
LastHeardFrom = 1795259732
PilotLeaseEnd = min({ MY.PilotReclaimDeadline,MY.JobStart + 172800 })
PilotWallLimit = 172800
PilotHeartbeat = 1795259730
AccountingGroup = "group_alice.alice@pool.test"
PilotAddUncomTime = 0.0
PilotLastJobStart = 1795259710
PilotLastExpJobEnd = 1795263310
PilotLastMaxJobEnd = 1795263310
PilotFirstExpJobEnd = 1795260310
PilotPriorityFactor = 0
PilotReportStanding = "fresh"
PilotReclaimDeadline = ifThenElse(regexp(strcat(strcat("^(.* )?",replaceall("[.]",MY.GlobalJobId,"[.]"),"@",MY.JobStart,"="),"[0-9]+( |$)"),"central.pool.test#3.0#1795259699@1795259705=1795259779"),int(replace(" .*$",replace(strcat("^(.* )?",replaceall("[.]",MY.GlobalJobId,"[.]"),"@",MY.JobStart,"="),"central.pool.test#3.0#1795259699@1795259705=1795259779",""),"")),undefined)
PilotReclaimOrders = "central.pool.test#3.0#1795259699@1795259705=1795259779"
PilotAddFinalExpWaste = 6000.0
PilotCanPostponeLastJob = true
RetirementTimeRemaining = 0

# Accounting 1795259734
Name = "group_alice"
Priority = 516.428
LastHeardFrom = 1795259731
ResourcesUsed = 9
EffectiveQuota = 48.0
PriorityFactor = 1000.0
IsAccountingGroup = true
WeightedResourcesUsed = 72.0

Name = "<none>"
Priority = 500.0
LastHeardFrom = 1795259731
ResourcesUsed = 0
EffectiveQuota = 0.0
PriorityFactor = 1000.0
IsAccountingGroup = true
WeightedResourcesUsed = 0.0

Name = "group_bob.bob@pool.test"
Priority = 500.0
LastHeardFrom = 1795259731
ResourcesUsed = 0
PriorityFactor = 1000.0
IsAccountingGroup = false
WeightedResourcesUsed = 0.0

Name = "group_alice.alice@pool.test"
Priority = 516.428
LastHeardFrom = 1795259731
ResourcesUsed = 9
PriorityFactor = 1000.0
IsAccountingGroup = false
WeightedResourcesUsed = 72.0

Name = "group_bob"
Priority = 500.0
LastHeardFrom = 1795259731
ResourcesUsed = 0
EffectiveQuota = 24.0
PriorityFactor = 1000.0
IsAccountingGroup = true
WeightedResourcesUsed = 0.0

# Submitter 1795259734
Name = "group_bob.bob@pool.test"
IdleJobs = 3
LastHeardFrom = 1795259731
WeightedIdleJobs = 24

Name = "group_alice.alice@pool.test"
IdleJobs = 0
LastHeardFrom = 1795259731
WeightedIdleJobs = 0

