-- Flux: a file of /etc/flux/shell/lua.d, which names a job's features to its tasks.
local tree = string.format("/run/drainwise/flux.%d", shell.info.jobid)
for name, directory in pairs({
    MACHINEFEATURES = ".machinefeatures",
    JOBFEATURES = ".jobfeatures",
    JOBSTATUS = ".jobstatus",
}) do
    local path = tree .. "/" .. directory
    local opened = io.open(path)
    if opened then
        opened:close()
        for _, prefix in ipairs({ "", "APPTAINERENV_", "SINGULARITYENV_" }) do
            shell.setenv(prefix .. name, path)
        end
    end
end
