# drainwise on a machine of an HTCondor pool or a Slurm cluster, from packages of the site's repository.
#
# @param batch the batch system
# @param role what the machine is in it: jobs run on a node, users submit on an access point
# @param enabled whether the batch system here uses drainwise; jobs that run are not harmed by either value
# @param site_file the text of the site file, on the central machine
class drainwise (
  Enum['htcondor', 'slurm'] $batch = 'htcondor',
  Enum['node', 'access', 'central'] $role = 'node',
  Boolean $enabled = true,
  Optional[String] $site_file = undef,
) {
  $configuration = $batch ? {
    'htcondor' => 'drainwise-condor',
    default    => 'drainwise-slurm',
  }

  package { ['drainwise-node', $configuration]:
    ensure => installed,
  }

  if $batch == 'htcondor' {
    $present = $enabled ? {
      true    => file,
      default => absent,
    }

    file { '/etc/condor/config.d/40-drainwise-enabled.conf':
      ensure  => $present,
      mode    => '0644',
      content => "DRAINWISE_ENABLED = True\n",
      require => Package[$configuration],
      notify  => Exec['drainwise condor_reconfig'],
    }

    exec { 'drainwise condor_reconfig':
      command     => 'condor_reconfig',
      path        => ['/usr/sbin', '/usr/bin'],
      refreshonly => true,
    }
  } elsif $role == 'node' {
    service { 'drainwise-node-agent':
      ensure  => $enabled,
      enable  => $enabled,
      require => Package[$configuration],
    }
  }

  if $role == 'central' {
    package { 'drainwise':
      ensure => installed,
    }

    service { 'drainwise-agent':
      ensure  => running,
      enable  => true,
      require => Package['drainwise'],
    }

    if $site_file {
      file { '/etc/drainwise/site.ini':
        ensure  => file,
        mode    => '0644',
        content => $site_file,
        require => Package['drainwise'],
        notify  => Service['drainwise-agent'],
      }
    }
  }
}
