// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"

	"github.com/clusterhub/clusterhub/pkg/inspect/diagnosis"
)

const (
	// LeaderMissing means that a component has no leader.
	LeaderMissing diagnosis.ID = "LeaderMissing"
	// ClockSkew means that a clock is so wrong that leases and certificates are misjudged.
	ClockSkew diagnosis.ID = "ClockSkew"
	// VersionSkew means that components, or this program, have different versions.
	VersionSkew diagnosis.ID = "VersionSkew"
	// StorageFull means that an etcd accepts no more writes.
	StorageFull diagnosis.ID = "StorageFull"
	// StorageNearlyFull means that an etcd will soon accept no more writes.
	StorageNearlyFull diagnosis.ID = "StorageNearlyFull"
	// FrontNotReady means that the front reports that it is not ready.
	FrontNotReady diagnosis.ID = "FrontNotReady"
)

const (
	// maxSkew is less than agents and tokens tolerate, and more than the latency of a network.
	maxSkew = 10 * time.Second
	manager = "hub-controller-manager"
)

// optional are the components that a hub may not have.
var optional = []string{"hub-certificate-approver"}

func (h *Hub) lease(name string) *coordinationv1.Lease {
	for i := range h.Leases.Items {
		if h.Leases.Items[i].Name == name {
			return &h.Leases.Items[i]
		}
	}
	return nil
}

func (h *Hub) leaders() (found []diagnosis.Finding) {
	if !h.Leases.Seen {
		return nil
	}
	for _, component := range append([]string{manager}, optional...) {
		l, isOptional := h.lease(component), slices.Contains(optional, component)
		deployed := h.deployment(component) != nil
		if l == nil && isOptional && !deployed {
			continue
		}
		f := diagnosis.Finding{ID: LeaderMissing, Severity: diagnosis.Error, Object: "lease/" + component + " in " + systemNamespace, Turn: turnAdmin, Fix: h.start(component)}
		if isOptional && !deployed { // admins may approve by hand
			f.Severity = diagnosis.Warning
		}
		switch state := h.holder(l); {
		case l == nil:
			f.Cause = fmt.Sprintf("%s has never run here: it has no lease. %s", component, h.runs(component))
		case state != "":
			f.Cause = fmt.Sprintf("No %s is active: %s. %s", component, state, h.runs(component))
			if l.Spec.RenewTime != nil {
				f.Since = &metav1.Time{Time: l.Spec.RenewTime.Time}
			}
		default:
			continue
		}
		found = append(found, f)
	}
	return found
}

// holder returns why no process acts by a lease, or "".
func (h *Hub) holder(l *coordinationv1.Lease) string {
	switch {
	case l == nil:
		return ""
	case l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity == "":
		return "the last one released its lease when it ended"
	case l.Spec.RenewTime == nil || l.Spec.LeaseDurationSeconds == nil:
		return "its lease has no renewTime or leaseDurationSeconds"
	}
	duration := time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second
	if age := h.age(l.Spec.RenewTime.Time); age > duration+h.SkewWithin {
		return fmt.Sprintf("%s renewed its lease %s ago, and the lease lasts %s", *l.Spec.HolderIdentity, age, duration)
	}
	return ""
}

// skewPrecision returns the precision for printing the skew. The header Date has seconds, and responses take time: a text that differs by a second
// from one run to the next would be more precise than the measurement.
func (h *Hub) skewPrecision() time.Duration {
	if h.Skew.Abs() < time.Minute {
		return time.Second
	}
	return 10 * time.Second
}

func (h *Hub) clocks() (found []diagnosis.Finding) {
	if h.Skew.Abs() > maxSkew+h.SkewWithin {
		direction := "ahead of"
		if h.Skew < 0 {
			direction = "behind"
		}
		found = append(found, diagnosis.Finding{ID: ClockSkew, Severity: diagnosis.Warning, Object: "clock/local", Turn: "an admin of this machine, or of the hub",
			Cause: fmt.Sprintf("The clock of this machine is %s %s that of the hub. The side with the wrong clock may consider tokens and certificates not valid.",
				h.Skew.Abs().Round(h.skewPrecision()), direction),
			Fix: []string{"sudo timedatectl set-ntp true"}})
	}
	for i := range h.Leases.Items {
		l := &h.Leases.Items[i]
		if l.Spec.RenewTime == nil || l.Spec.HolderIdentity == nil {
			continue
		}
		if ahead := l.Spec.RenewTime.Sub(h.Now); ahead > maxSkew+h.SkewWithin {
			found = append(found, diagnosis.Finding{ID: ClockSkew, Severity: diagnosis.Error, Object: "lease/" + l.Name + " in " + systemNamespace, Turn: turnAdmin,
				Cause: fmt.Sprintf("%s has renewed its lease %s in the future: its clock is ahead of that of the hub. If it ends, no other process takes over in time.",
					*l.Spec.HolderIdentity, ahead.Round(time.Second)),
				Fix: []string{"# on the machine of " + diagnosis.OneLine(*l.Spec.HolderIdentity) + ":", "sudo timedatectl set-ntp true"}})
		}
	}
	return found
}

// tags returns the tags of the images of our components, by component.
func (h *Hub) tags() map[string]string {
	tags := map[string]string{}
	for i := range h.Deployments.Items {
		if tag := VersionOf(&h.Deployments.Items[i]); tag != "" {
			tags[h.Deployments.Items[i].Name] = tag
		}
	}
	return tags
}

// otherVersion returns the version of hub-apiserver if it certainly differs from this program's: then the manifests of this program are not what the
// hub should have.
func (h *Hub) otherVersion() string {
	tag := h.tags()[apiServer]
	if tag == "" || !strings.HasPrefix(h.Version, "v") || strings.TrimSuffix(h.Version, "-dirty") == strings.TrimSuffix(tag, "-dirty") {
		return ""
	}
	return tag
}

func (h *Hub) versions() (found []diagnosis.Finding) {
	tags := h.tags()
	ours := tags[apiServer]
	for i := range h.Deployments.Items {
		name := h.Deployments.Items[i].Name
		if tag := tags[name]; tag != "" && ours != "" && tag != ours {
			found = append(found, diagnosis.Finding{ID: VersionSkew, Severity: diagnosis.Warning, Object: "deployment/" + name + " in " + systemNamespace, Turn: turnAdmin,
				Cause: fmt.Sprintf("It has version %s, and hub-apiserver %s. Components are only tested with the same version of the others.", tag, ours),
				Fix:   []string{fmt.Sprintf("kubectl -n %s set image deployment/%s %[2]s=%s", systemNamespace, diagnosis.ShellWord(name), diagnosis.ShellWord(h.imageOf(name, ours)))}})
		}
	}
	if tag := h.otherVersion(); tag != "" {
		found = append(found, diagnosis.Finding{ID: VersionSkew, Severity: diagnosis.Warning, Object: "program/kubectl-hub", Turn: "you",
			Cause: fmt.Sprintf("This kubectl hub has version %s, and the hub %s. Permissions and admission policies were not compared with those of that version.", h.Version, tag),
			Fix:   []string{"# install kubectl-hub " + diagnosis.OneLine(tag)}})
	}
	return found
}

func (h *Hub) imageOf(name, tag string) string {
	for _, c := range h.deployment(name).Spec.Template.Spec.Containers {
		if c.Name == name {
			return c.Image[:strings.LastIndex(c.Image, ":")] + ":" + tag
		}
	}
	return name + ":" + tag
}

func (h *Hub) front() (found []diagnosis.Finding) {
	if h.FrontReady != "" {
		found = append(found, diagnosis.Finding{ID: FrontNotReady, Severity: diagnosis.Error, Object: "kube-apiserver", Turn: turnAdmin,
			Cause: "The front reports that it is not ready: " + diagnosis.TrimPeriod(h.FrontReady) + ".", Fix: []string{"kubectl get --raw '/readyz?verbose'"}})
	}
	if h.Serving != nil && h.Serving.Before(h.Now.Add(expiresSoon)) {
		found = append(found, diagnosis.Finding{ID: CertificateExpiring, Severity: diagnosis.Warning, Object: "kube-apiserver", Turn: turnAdmin,
			Cause: fmt.Sprintf("The serving certificate of the front expires on %s. After that, no agent and no user can connect to the hub.", h.Serving.UTC().Format(time.RFC3339)),
			Fix:   []string{"# renew the certificate of kube-apiserver, such as by: kubeadm certs renew apiserver"}})
	}
	return found
}

func (h *Hub) storage() (found []diagnosis.Finding) {
	s := h.Storage
	f := diagnosis.Finding{Object: "etcd", Turn: turnAdmin}
	switch {
	case s.Refused != "":
		f.ID, f.Severity, f.Cause = StorageFull, diagnosis.Error, "hub-apiserver refuses writes because the storage is full: "+diagnosis.TrimPeriod(s.Refused)+"."
	case s.Quota > 0 && s.Size >= s.Quota:
		f.ID, f.Severity, f.Cause = StorageFull, diagnosis.Error, fmt.Sprintf("An etcd uses %s of its quota of %s.", mebibytes(s.Size), mebibytes(s.Quota))
	case s.Quota > 0 && s.Size >= s.Quota/10*9:
		f.ID, f.Severity, f.Cause = StorageNearlyFull, diagnosis.Warning, fmt.Sprintf("An etcd uses %s of its quota of %s.", mebibytes(s.Size), mebibytes(s.Quota))
	default:
		return nil
	}
	large, words := h.largest()
	f.Cause += words
	f.Fix = []string{
		"# delete objects that are not needed: deletions still work, and hub-apiserver then frees the space",
		"kubectl get managedclusters --sort-by=.metadata.creationTimestamp",
	}
	if f.ID == StorageFull && len(large) > 0 {
		f.Fix = append(f.Fix, "# large clusters that are not accepted: agents that still run create them again",
			diagnosis.ShellCommand(append([]string{"kubectl", "delete", "managedclusters." + clusterv1.GroupName, "--wait=false"}, large...)...))
	}
	f.Fix = append(f.Fix, "# an etcd outside of hub-apiserver: docs/operating.md#storage")
	return append(found, f)
}

const (
	// maxDeleted is the largest number of clusters that a command deletes, and largeFrom the size in bytes from which an object is listed.
	maxDeleted, largeFrom = 20, 16 << 10
)

// largest returns the names of large clusters that nothing depends on, because they are not accepted, and a description of the largest of all
// clusters.
func (h *Hub) largest() (names []string, words string) {
	type sized struct {
		*clusterv1.ManagedCluster
		size int
	}
	all := make([]sized, len(h.Clusters.Items))
	for i := range h.Clusters.Items {
		data, _ := json.Marshal(&h.Clusters.Items[i]) // objects that were read can be marshaled
		all[i] = sized{&h.Clusters.Items[i], len(data)}
	}
	slices.SortStableFunc(all, func(a, b sized) int { return cmp.Or(b.size-a.size, cmp.Compare(a.Name, b.Name)) })
	if len(all) == 0 || all[0].size < largeFrom {
		return nil, ""
	}
	for _, c := range all {
		if c.size >= largeFrom && !c.Spec.HubAcceptsClient && len(names) < maxDeleted {
			names = append(names, c.Name)
		}
	}
	return names, fmt.Sprintf(" The largest of %d clusters is %s, with %d KiB.", len(all), diagnosis.OneLine(all[0].Name), all[0].size>>10)
}

func mebibytes(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }
