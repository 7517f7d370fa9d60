// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	localserver "github.com/clusterhub/clusterhub/pkg/local/server"
)

// The maximum on one machine, of fronts and of hub-apiservers each, and of clusters: each front takes some 300 MB, each cluster some 400.
const (
	MaxReplicas = 5
	MaxClusters = 8
)

// memberName returns the name of a process of which there can be several. The name of the first is its kind alone.
func memberName(kind string, i int) string {
	if i == 0 {
		return kind
	}
	return fmt.Sprintf("%s-%d", kind, i)
}

// memberOf returns the kind of a process, and its number.
func memberOf(name string) (kind string, i int) {
	if at := strings.LastIndexByte(name, '-'); at > 0 {
		if i, err := strconv.Atoi(name[at+1:]); err == nil {
			return name[:at], i
		}
	}
	return name, 0
}

// clusterName returns the name of a cluster of Options.Clusters, and of its directory.
func clusterName(i int) string { return fmt.Sprintf("cluster-%d", i+1) }

// members returns the numbers of the processes of a kind, at least one.
func (l *launcher) members(kind string) (all []int) {
	for i := range max(l.ports.members(kind), 1) {
		all = append(all, i)
	}
	return all
}

// topology is the topology that a directory has; all fields are 0 when it is new.
type topology struct {
	fronts, hubAPIServers, clusters int
	// etcdMembers is the number of members with data, and etcdPorts of those whose ports are known.
	etcdMembers, etcdPorts int
	// embedded and external report where hub-apiserver has stored its objects.
	embedded, external bool
}

func (l *launcher) topology() topology {
	has := topology{
		fronts: l.ports.members(procFront), hubAPIServers: l.ports.members(procHubAPIServer), etcdPorts: l.ports.members(procEtcd),
		embedded: exists(l.path(procHubAPIServer, "etcd")), external: exists(l.path(procHubEtcd)),
	}
	for exists(l.path(memberName(procEtcd, has.etcdMembers))) {
		has.etcdMembers++
	}
	for exists(l.path(clusterName(has.clusters))) {
		has.clusters++
	}
	return has
}

// within completes a configuration with the topology of its directory, and returns an error for impossible changes.
func (c Options) within(has topology) (Options, error) {
	for _, count := range []struct {
		what             string
		asked            *int
		has, least, most int
	}{
		{"kube-apiservers in front", &c.FrontReplicas, has.fronts, 1, MaxReplicas},
		{"hub-apiservers", &c.Replicas, has.hubAPIServers, 1, MaxReplicas},
		{"members of each etcd", &c.EtcdMembers, has.etcdMembers, 1, 3},
		{"clusters beside the hub", &c.Clusters, has.clusters, 0, MaxClusters},
	} {
		if *count.asked == 0 {
			*count.asked = max(count.has, count.least)
		}
		if *count.asked < count.least || *count.asked > count.most {
			return c, fmt.Errorf("%s: requested %d, must be %d to %d", count.what, *count.asked, count.least, count.most)
		}
	}
	const startOver = "delete the hub with its data (`localhub clean`) and start it again"
	switch {
	case c.EtcdMembers == 2:
		return c, errors.New("members of each etcd: requested 2, must be 1 or 3: two members have no quorum when one fails")
	case has.etcdMembers != 0 && has.etcdMembers != c.EtcdMembers:
		return c, fmt.Errorf("members of each etcd: requested %d, but %s has %d, which cannot change: request %d, or %s",
			c.EtcdMembers, c.Dir, has.etcdMembers, has.etcdMembers, startOver)
	case has.etcdMembers > 1 && has.etcdPorts != has.etcdMembers:
		return c, fmt.Errorf("%s does not have the ports of the %d members of etcd: restore the file, or %s",
			c.portsFile(), has.etcdMembers, startOver)
	case c.Clusters < has.clusters:
		return c, fmt.Errorf("clusters beside the hub: requested %d, but %s has %d: request %d or more, or %s",
			c.Clusters, c.Dir, has.clusters, has.clusters, startOver)
	case c.Plain && (has.embedded || has.external):
		return c, fmt.Errorf("a plain cluster was requested, but %s has a hub: use another directory", c.Dir)
	case c.Plain:
		return c, nil
	}
	c.ExternalEtcd = c.ExternalEtcd || c.Replicas > 1 || c.EtcdMembers > 1 || has.external && !has.embedded
	if c.ExternalEtcd && has.embedded && !has.external {
		return c, fmt.Errorf("an external etcd was requested, which several hub-apiservers and an etcd of 3 members need, "+
			"but the hub in %s stores its objects in the embedded one: request neither, or %s", c.Dir, startOver)
	}
	return c, nil
}

// frontURL returns the URL of a front for clients.
func (l *launcher) frontURL(replica int) string {
	return "https://" + localserver.Address(l.ports[memberName(procFront, replica)])
}

// runningFronts returns the running fronts. If none runs, as before the first start, it returns those that will.
func (l *launcher) runningFronts() (running []int) {
	all := l.members(procFront)
	for _, i := range all {
		if l.running(memberName(procFront, i)) {
			running = append(running, i)
		}
	}
	if len(running) == 0 {
		return all
	}
	return running
}
