# Startd 1795259537
Cpus = 8
Name = "slot1_1@node1.pool.test"
State = "Claimed"
Memory = 128
MyType = "Machine"
Machine = "node1.pool.test"
Activity = "Busy"
JobStart = 1795259517
RemoteUser = "alice@pool.test"
SlotWeight = Cpus
GlobalJobId = "central.pool.test#5.0#1795259516"
RemoteOwner = "alice@pool.test"
PilotUsedCpu = 8.0
LastHeardFrom = 1795259536
PilotLeaseEnd = min({ MY.PilotReclaimDeadline,MY.JobStart + 172800 })
PilotWallLimit = 172800
PilotHeartbeat = 1795259518
AccountingGroup = "group_alice.alice@pool.test"
PilotAddUncomTime = 0.0
PilotLastJobStart = 1795259518
PilotLastExpJobEnd = 1795261318
PilotLastMaxJobEnd = 1795261318
PilotFirstExpJobEnd = 1795261318
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
JobStart = 1795259516
RemoteUser = "alice@pool.test"
SlotWeight = Cpus
GlobalJobId = "central.pool.test#1.0#1795259515"
RemoteOwner = "alice@pool.test"
PilotUsedCpu = 8.0
LastHeardFrom = 1795259534
PilotLeaseEnd = min({ MY.PilotReclaimDeadline,MY.JobStart + 172800 })
PilotWallLimit = 172800
PilotHeartbeat = 1795259516
AccountingGroup = "group_alice.alice@pool.test"
PilotAddUncomTime = 0.0
PilotLastJobStart = 1795259516
PilotLastExpJobEnd = 1795259541
PilotLastMaxJobEnd = 1795259541
PilotFirstExpJobEnd = 1795259536
PilotPriorityFactor = 0
PilotReportStanding = "fresh"
PilotReclaimDeadline = ifThenElse(regexp(strcat(strcat("^(.* )?",replaceall("[.]",MY.GlobalJobId,"[.]"),"@",MY.JobStart,"="),"[0-9]+( |$)"),"central.pool.test#3.0#1795259515@1795259517=1795259589 central.pool.test#1.0#1795259515@1795259516=1795259589"),int(replace(" .*$",replace(strcat("^(.* )?",replaceall("[.]",MY.GlobalJobId,"[.]"),"@",MY.JobStart,"="),"central.pool.test#3.0#1795259515@1795259517=1795259589 central.pool.test#1.0#1795259515@1795259516=1795259589",""),"")),undefined)
PilotReclaimOrders = "central.pool.test#3.0#1795259515@1795259517=1795259589 central.pool.test#1.0#1795259515@1795259516=1795259589"
PilotAddFinalExpWaste = 20.0
PilotCanPostponeLastJob = true
RetirementTimeRemaining = 55

Cpus = 8
Name = "slot1_1@node3.pool.test"
State = "Claimed"
Memory = 128
MyType = "Machine"
Machine = "node3.pool.test"
Activity = "Retiring"
JobStart = 1795259516
RemoteUser = "alice@pool.test"
SlotWeight = Cpus
GlobalJobId = "central.pool.test#2.0#1795259515"
RemoteOwner = "alice@pool.test"
PilotUsedCpu = 8.0
LastHeardFrom = 1795259535
PilotLeaseEnd = min({ MY.PilotReclaimDeadline,MY.JobStart + 172800 })
PilotWallLimit = 172800
PilotHeartbeat = 1795259516
AccountingGroup = "group_alice.alice@pool.test"
PilotAddUncomTime = 0.0
PilotLastJobStart = 1795259516
PilotLastExpJobEnd = 1795259538
PilotLastMaxJobEnd = 1795259538
PilotFirstExpJobEnd = 1795259538
PilotPriorityFactor = 0
PilotReportStanding = "fresh"
PilotReclaimDeadline = ifThenElse(regexp(strcat(strcat("^(.* )?",replaceall("[.]",MY.GlobalJobId,"[.]"),"@",MY.JobStart,"="),"[0-9]+( |$)"),"central.pool.test#2.0#1795259515@1795259516=1795259589"),int(replace(" .*$",replace(strcat("^(.* )?",replaceall("[.]",MY.GlobalJobId,"[.]"),"@",MY.JobStart,"="),"central.pool.test#2.0#1795259515@1795259516=1795259589",""),"")),undefined)
PilotReclaimOrders = "central.pool.test#2.0#1795259515@1795259516=1795259589"
PilotAddFinalExpWaste = 0.0
PilotCanPostponeLastJob = true
RetirementTimeRemaining = 54

Cpus = 8
Name = "slot1_2@node1.pool.test"
State = "Claimed"
Memory = 128
MyType = "Machine"
Machine = "node1.pool.test"
Activity = "Busy"
JobStart = 1795259517
RemoteUser = "alice@pool.test"
SlotWeight = Cpus
GlobalJobId = "central.pool.test#8.0#1795259516"
RemoteOwner = "alice@pool.test"
PilotUsedCpu = 6.0
LastHeardFrom = 1795259536
PilotLeaseEnd = min({ MY.PilotReclaimDeadline,MY.JobStart + 172800 })
PilotWallLimit = 172800
PilotHeartbeat = 1795259518
AccountingGroup = "group_alice.alice@pool.test"
PilotAddUncomTime = 0.0
PilotLastJobStart = 1795259518
PilotLastExpJobEnd = 1795262518
PilotLastMaxJobEnd = 1795262518
PilotFirstExpJobEnd = 1795262518
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
Activity = "Retiring"
JobStart = 1795259517
RemoteUser = "alice@pool.test"
SlotWeight = Cpus
GlobalJobId = "central.pool.test#3.0#1795259515"
RemoteOwner = "alice@pool.test"
PilotUsedCpu = 8.0
LastHeardFrom = 1795259534
PilotLeaseEnd = min({ MY.PilotReclaimDeadline,MY.JobStart + 172800 })
PilotWallLimit = 172800
PilotHeartbeat = 1795259518
AccountingGroup = "group_alice.alice@pool.test"
PilotAddUncomTime = 0.0
PilotLastJobStart = 1795259518
PilotLastExpJobEnd = 1795259542
PilotLastMaxJobEnd = 1795259542
PilotFirstExpJobEnd = 1795259539
PilotPriorityFactor = 0
PilotReportStanding = "fresh"
PilotReclaimDeadline = ifThenElse(regexp(strcat(strcat("^(.* )?",replaceall("[.]",MY.GlobalJobId,"[.]"),"@",MY.JobStart,"="),"[0-9]+( |$)"),"central.pool.test#3.0#1795259515@1795259517=1795259589 central.pool.test#1.0#1795259515@1795259516=1795259589"),int(replace(" .*$",replace(strcat("^(.* )?",replaceall("[.]",MY.GlobalJobId,"[.]"),"@",MY.JobStart,"="),"central.pool.test#3.0#1795259515@1795259517=1795259589 central.pool.test#1.0#1795259515@1795259516=1795259589",""),"")),undefined)
PilotReclaimOrders = "central.pool.test#3.0#1795259515@1795259517=1795259589 central.pool.test#1.0#1795259515@1795259516=1795259589"
PilotAddFinalExpWaste = 12.0
PilotCanPostponeLastJob = true
RetirementTimeRemaining = 55

Cpus = 8
Name = "slot1_2@node3.pool.test"
State = "Claimed"
Memory = 128
MyType = "Machine"
Machine = "node3.pool.test"
Activity = "Busy"
JobStart = 1795259517
RemoteUser = "alice@pool.test"
SlotWeight = Cpus
GlobalJobId = "central.pool.test#4.0#1795259516"
RemoteOwner = "alice@pool.test"
PilotUsedCpu = 8.0
LastHeardFrom = 1795259535
PilotLeaseEnd = min({ MY.PilotReclaimDeadline,MY.JobStart + 172800 })
PilotWallLimit = 172800
PilotHeartbeat = 1795259518
AccountingGroup = "group_alice.alice@pool.test"
PilotAddUncomTime = 0.0
PilotLastJobStart = 1795259518
PilotLastExpJobEnd = 1795261018
PilotLastMaxJobEnd = 1795261018
PilotFirstExpJobEnd = 1795261018
PilotPriorityFactor = 0
PilotReportStanding = "fresh"
PilotReclaimDeadline = ifThenElse(regexp(strcat(strcat("^(.* )?",replaceall("[.]",MY.GlobalJobId,"[.]"),"@",MY.JobStart,"="),"[0-9]+( |$)"),"central.pool.test#2.0#1795259515@1795259516=1795259589"),int(replace(" .*$",replace(strcat("^(.* )?",replaceall("[.]",MY.GlobalJobId,"[.]"),"@",MY.JobStart,"="),"central.pool.test#2.0#1795259515@1795259516=1795259589",""),"")),undefined)
PilotReclaimOrders = "central.pool.test#2.0#1795259515@1795259516=1795259589"
PilotAddFinalExpWaste = 0.0
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
LastHeardFrom = 1795259536
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
LastHeardFrom = 1795259534
PilotLeaseEnd = min({ MY.PilotReclaimDeadline,MY.JobStart + 172800 })
PilotWallLimit = 172800
PartitionableSlot = true
PilotReclaimDeadline = ifThenElse(regexp(strcat(strcat("^(.* )?",replaceall("[.]",MY.GlobalJobId,"[.]"),"@",MY.JobStart,"="),"[0-9]+( |$)"),"central.pool.test#3.0#1795259515@1795259517=1795259589 central.pool.test#1.0#1795259515@1795259516=1795259589"),int(replace(" .*$",replace(strcat("^(.* )?",replaceall("[.]",MY.GlobalJobId,"[.]"),"@",MY.JobStart,"="),"central.pool.test#3.0#1795259515@1795259517=1795259589 central.pool.test#1.0#1795259515@1795259516=1795259589",""),"")),undefined)
PilotReclaimOrders = "central.pool.test#3.0#1795259515@1795259517=1795259589 central.pool.test#1.0#1795259515@1795259516=1795259589"
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
LastHeardFrom = 1795259535
PilotLeaseEnd = min({ MY.PilotReclaimDeadline,MY.JobStart + 172800 })
PilotWallLimit = 172800
PartitionableSlot = true
PilotReclaimDeadline = ifThenElse(regexp(strcat(strcat("^(.* )?",replaceall("[.]",MY.GlobalJobId,"[.]"),"@",MY.JobStart,"="),"[0-9]+( |$)"),"central.pool.test#2.0#1795259515@1795259516=1795259589"),int(replace(" .*$",replace(strcat("^(.* )?",replaceall("[.]",MY.GlobalJobId,"[.]"),"@",MY.JobStart,"="),"central.pool.test#2.0#1795259515@1795259516=1795259589",""),"")),undefined)
PilotReclaimOrders = "central.pool.test#2.0#1795259515@1795259516=1795259589"
RetirementTimeRemaining = 0

Cpus = 8
Name = "slot1_3@node1.pool.test"
State = "Claimed"
Memory = 128
MyType = "Machine"
Machine = "node1.pool.test"
Activity = "Busy"
JobStart = 1795259517
RemoteUser = "alice@pool.test"
SlotWeight = Cpus
GlobalJobId = "central.pool.test#9.0#1795259516"
RemoteOwner = "alice@pool.test"
PilotUsedCpu = 8.0
LastHeardFrom = 1795259536
PilotLeaseEnd = min({ MY.PilotReclaimDeadline,MY.JobStart + 172800 })
PilotWallLimit = 172800
PilotHeartbeat = 1795259518
AccountingGroup = "group_alice.alice@pool.test"
PilotAddUncomTime = 0.0
PilotLastJobStart = 1795259518
PilotLastExpJobEnd = 1795263118
PilotLastMaxJobEnd = 1795263118
PilotFirstExpJobEnd = 1795260118
PilotPriorityFactor = 0
PilotReportStanding = "fresh"
PilotReclaimDeadline = ifThenElse(regexp(strcat(strcat("^(.* )?",replaceall("[.]",MY.GlobalJobId,"[.]"),"@",MY.JobStart,"="),"[0-9]+( |$)"),""),int(replace(" .*$",replace(strcat("^(.* )?",replaceall("[.]",MY.GlobalJobId,"[.]"),"@",MY.JobStart,"="),"",""),"")),undefined)
PilotReclaimOrders = ""
PilotAddFinalExpWaste = 6000.0
PilotCanPostponeLastJob = true
RetirementTimeRemaining = 0

Cpus = 8
Name = "slot1_3@node2.pool.test"
State = "Claimed"
Memory = 128
MyType = "Machine"
Machine = "node2.pool.test"
Activity = "Busy"
JobStart = 1795259517
RemoteUser = "alice@pool.test"
SlotWeight = Cpus
GlobalJobId = "central.pool.test#6.0#1795259516"
RemoteOwner = "alice@pool.test"
PilotUsedCpu = 7.0
LastHeardFrom = 1795259534
PilotLeaseEnd = min({ MY.PilotReclaimDeadline,MY.JobStart + 172800 })
PilotWallLimit = 172800
PilotHeartbeat = 1795259518
AccountingGroup = "group_alice.alice@pool.test"
PilotAddUncomTime = 0.0
PilotLastJobStart = 1795259518
PilotLastExpJobEnd = 1795260718
PilotLastMaxJobEnd = 1795260718
PilotFirstExpJobEnd = 1795260718
PilotPriorityFactor = 0
PilotReportStanding = "fresh"
PilotReclaimDeadline = ifThenElse(regexp(strcat(strcat("^(.* )?",replaceall("[.]",MY.GlobalJobId,"[.]"),"@",MY.JobStart,"="),"[0-9]+( |$)"),"central.pool.test#3.0#1795259515@1795259517=1795259589 central.pool.test#1.0#1795259515@1795259516=1795259589"),int(replace(" .*$",replace(strcat("^(.* )?",replaceall("[.]",MY.GlobalJobId,"[.]"),"@",MY.JobStart,"="),"central.pool.test#3.0#1795259515@1795259517=1795259589 central.pool.test#1.0#1795259515@1795259516=1795259589",""),"")),undefined)
PilotReclaimOrders = "central.pool.test#3.0#1795259515@1795259517=1795259589 central.pool.test#1.0#1795259515@1795259516=1795259589"
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
JobStart = 1795259517
RemoteUser = "alice@pool.test"
SlotWeight = Cpus
GlobalJobId = "central.pool.test#7.0#1795259516"
RemoteOwner = "alice@pool.test"
PilotUsedCpu = 8.0
LastHeardFrom = 1795259535
PilotLeaseEnd = min({ MY.PilotReclaimDeadline,MY.JobStart + 172800 })
PilotWallLimit = 172800
PilotHeartbeat = 1795259518
AccountingGroup = "group_alice.alice@pool.test"
PilotAddUncomTime = 0.0
PilotLastJobStart = 1795259518
PilotLastExpJobEnd = 1795262218
PilotLastMaxJobEnd = 1795262218
PilotFirstExpJobEnd = 1795260418
PilotPriorityFactor = 0
PilotReportStanding = "fresh"
PilotReclaimDeadline = ifThenElse(regexp(strcat(strcat("^(.* )?",replaceall("[.]",MY.GlobalJobId,"[.]"),"@",MY.JobStart,"="),"[0-9]+( |$)"),"central.pool.test#2.0#1795259515@1795259516=1795259589"),int(replace(" .*$",replace(strcat("^(.* )?",replaceall("[.]",MY.GlobalJobId,"[.]"),"@",MY.JobStart,"="),"central.pool.test#2.0#1795259515@1795259516=1795259589",""),"")),undefined)
PilotReclaimOrders = "central.pool.test#2.0#1795259515@1795259516=1795259589"
PilotAddFinalExpWaste = 7200.0
PilotCanPostponeLastJob = true
RetirementTimeRemaining = 0

# Accounting 1795259537
Name = "group_alice"
Priority = 511.0869999999999
LastHeardFrom = 1795259535
ResourcesUsed = 9
EffectiveQuota = 48.0
PriorityFactor = 1000.0
IsAccountingGroup = true
WeightedResourcesUsed = 72.0

Name = "<none>"
Priority = 500.0
LastHeardFrom = 1795259535
ResourcesUsed = 0
EffectiveQuota = 0.0
PriorityFactor = 1000.0
IsAccountingGroup = true
WeightedResourcesUsed = 0.0

Name = "group_alice.alice@pool.test"
Priority = 511.0869999999999
LastHeardFrom = 1795259535
ResourcesUsed = 9
PriorityFactor = 1000.0
IsAccountingGroup = false
WeightedResourcesUsed = 72.0

Name = "group_bob"
Priority = 500.0
LastHeardFrom = 1795259535
ResourcesUsed = 0
EffectiveQuota = 24.0
PriorityFactor = 1000.0
IsAccountingGroup = true
WeightedResourcesUsed = 0.0

# Submitter 1795259537
Name = "group_bob.bob@pool.test"
IdleJobs = 3
LastHeardFrom = 1795259536
WeightedIdleJobs = 24

Name = "group_alice.alice@pool.test"
IdleJobs = 0
LastHeardFrom = 1795259536
WeightedIdleJobs = 0

