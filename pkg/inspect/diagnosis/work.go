// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"

	"github.com/clusterhub/clusterhub/pkg/inspect"
)

// Findings about a work.
const (
	// WorkMissing: the cluster has no such work.
	WorkMissing ID = "WorkMissing"
	// WorkNotTaken: the agent has not observed the current generation of the work.
	WorkNotTaken ID = "WorkNotTaken"
	// WorkDeleting: it is being deleted, and its objects still exist.
	WorkDeleting ID = "WorkDeleting"
	// ManifestForbidden: the agent has no permission to apply an object of it.
	ManifestForbidden ID = "ManifestForbidden"
	// ManifestNotApplied: an object of it could not be applied.
	ManifestNotApplied ID = "ManifestNotApplied"
	// ManifestNotAvailable: an object of it does not exist, or is not ready.
	ManifestNotAvailable ID = "ManifestNotAvailable"
	// ManifestDegraded: a rule of the work reports that an object does not reach its desired state.
	ManifestDegraded ID = "ManifestDegraded"
)

// WorkFacts are the known facts about a work.
type WorkFacts struct {
	Cluster, Name string
	Now           time.Time
	Work          Read[*workv1.ManifestWork]
	// OfCluster is the answer about the cluster itself: a work cannot be healthier than its cluster.
	OfCluster Answer
}

// noNamespace matches the error of an API server if the namespace of an object does not exist.
var noNamespace = regexp.MustCompile(`namespaces "([a-z0-9-]{1,63})" not found`)

type workChain struct {
	WorkFacts
	work *workv1.ManifestWork
}

// OfWork explains why a work is not complete on a cluster.
func OfWork(facts WorkFacts) Answer {
	w := &workChain{WorkFacts: facts}
	w.work, _ = facts.Work.Get()
	links := []link{{"exists", w.exists}}
	if facts.Work.Why() == "" {
		links = append(links, link{"cluster", w.cluster}, link{"taken by agent", w.checkObserved}, link{"applied", w.applied}, link{"available", w.available}, link{"not degraded", w.degraded})
	}
	a := follow(links)
	subject := fmt.Sprintf("Work %s on cluster %s", facts.Name, facts.Cluster)
	if a.Finding != nil {
		a.Verdict = subject + " is not done"
		switch {
		case a.Finding.ID == WorkMissing:
			a.Verdict = subject + " does not exist"
		case a.Finding.ID == WorkDeleting:
			a.Verdict = subject + " is being deleted"
		case facts.OfCluster.Finding != nil && a.Finding.ID == facts.OfCluster.Finding.ID:
			a.Verdict = subject + " cannot be applied, or its status is out of date: " + facts.OfCluster.Verdict
		}
		return a
	}
	return a.setVerdict(subject + " is applied and available")
}

func (w *workChain) object() string { return "manifestwork/" + w.Cluster + "/" + w.Name }

func (w *workChain) exists() outcome {
	switch {
	case w.work != nil:
		return passed("created %s, with %d manifests", ago(w.Now, w.work.CreationTimestamp.Time), len(w.work.Spec.Workload.Manifests))
	case w.Work.IsMissing():
		return broken("it does not exist", Finding{ID: WorkMissing, Severity: Error, Object: w.object(), Turn: "you, or another user who may create works there",
			Cause: fmt.Sprintf("The namespace %s has no ManifestWork %s. The works of a ManifestWorkReplicaSet have longer names, which begin with its name.", w.Cluster, w.Name),
			Fix:   []string{ShellCommand("kubectl", "hub", "get", "works", "--clusters", w.Cluster)}})
	}
	return unseen(w.Work.Why())
}

// cluster returns the cluster's own chain as one link. Warnings about the cluster do not prevent a work from being complete.
func (w *workChain) cluster() outcome {
	a := &w.OfCluster
	switch {
	case a.Finding != nil && a.Finding.Severity == Error:
		f := *a.Finding
		f.Fix = append([]string{ShellCommand("kubectl", "hub", "why", "cluster", w.Cluster)}, f.Fix...)
		return broken(a.Verdict, f).without(a.Unseen...)
	case len(a.Steps) == 0:
		return unseen("the cluster was not checked")
	case a.IsBlind():
		return unseen(a.Verdict).without(a.Unseen...)
	}
	return passed("%s", a.Verdict)
}

// checkObserved checks whether the agent has observed the current generation of the work.
func (w *workChain) checkObserved() outcome {
	if !w.work.DeletionTimestamp.IsZero() {
		return w.deleting()
	}
	told := w.work.Status.Conditions
	newest := int64(-1)
	var at metav1.Time
	for i := range told {
		newest = max(newest, told[i].ObservedGeneration)
		if at.Before(&told[i].LastTransitionTime) {
			at = told[i].LastTransitionTime
		}
	}
	switch {
	case len(told) == 0:
		return w.notTaken(w.work.CreationTimestamp, "The agent has not reported on the work.")
	case newest < w.work.Generation:
		return w.notTaken(at, fmt.Sprintf("The agent has reported on generation %d of the work, but the work has generation %d: its conditions are about the older one.", newest, w.work.Generation))
	}
	return passed("generation %d; its conditions changed %s", newest, ago(w.Now, at.Time))
}

func (w *workChain) notTaken(at metav1.Time, cause string) outcome {
	return broken("not in its current generation", Finding{ID: WorkNotTaken, Severity: Error, Object: w.object(), Since: since(at), Turn: "the agent of " + w.Cluster,
		Cause: cause + " The cluster is healthy, so the agent does not apply works (kubectl hub join --works), or will do so within a minute.",
		Fix: []string{ShellCommand("kubectl", "hub", "work", "status", w.Name, "--clusters", w.Cluster, "--wait", "--timeout=1m"),
			"kubectl hub doctor --managed --context <CONTEXT OF THE CLUSTER>"}})
}

func (w *workChain) deleting() outcome {
	says := "its objects are not deleted yet"
	if c := meta.FindStatusCondition(w.work.Status.Conditions, workv1.WorkDeleting); c != nil && c.Message != "" {
		says = c.Message
	}
	return broken(says, Finding{ID: WorkDeleting, Severity: Error, Object: w.object(), Since: w.work.DeletionTimestamp, Turn: "the agent of " + w.Cluster,
		Cause: "The work was deleted, and waits until the agent has deleted its objects: " + says, Fix: []string{ShellCommand("kubectl", "get", "manifestwork", w.Name, "-n", w.Cluster, "-o", "yaml")}})
}

// state checks a condition of the current generation, and lists the objects that caused it.
func (w *workChain) state(condition, is string, bad metav1.ConditionStatus, id ID) outcome {
	var to []inspect.Fault
	for _, f := range inspect.Faults(w.work) {
		if f.Is == is {
			to = append(to, f)
		}
	}
	c := meta.FindStatusCondition(w.work.Status.Conditions, condition)
	if len(to) == 0 && (c == nil || c.Status != bad) {
		if condition != workv1.WorkDegraded && inspect.WorkState(w.work, condition) != string(metav1.ConditionTrue) {
			return broken("not known", w.unknown(id, condition, c))
		}
		if c == nil {
			return passed("no rule of the work evaluates it")
		}
		return passed("since %s", ago(w.Now, c.LastTransitionTime.Time))
	}
	f := Finding{ID: id, Severity: Error, Object: w.object(), Turn: "an author of the work, or an admin of the cluster",
		Fix: []string{ShellCommand("kubectl", "hub", "work", "status", w.Name, "--clusters", w.Cluster), ShellCommand("kubectl", "edit", "manifestwork", w.Name, "-n", w.Cluster)}}
	if len(to) == 0 {
		f.Cause, f.Since = "The agent reports for the work: "+c.Message+".", since(c.LastTransitionTime)
		return broken(c.Message, f)
	}
	first := to[0]
	f.Since, f.Cause = since(first.Since), first.String()+"."
	if len(to) > 1 {
		f.Cause += fmt.Sprintf(" %d more are %s.", len(to)-1, is)
	}
	switch lost := noNamespace.FindStringSubmatch(first.Why); {
	case is == "not applied" && strings.Contains(first.Why, "is forbidden"):
		w.forbidden(&f)
	case is == "not applied" && lost != nil:
		f.Turn = "an author of the work, to add the namespace to it; or an admin of the cluster"
		f.Fix = append([]string{ShellCommand("kubectl", "create", "namespace", lost[1]) + " --context <CONTEXT OF THE CLUSTER>"}, f.Fix...)
	}
	return broken(first.String(), f)
}

func (w *workChain) unknown(id ID, condition string, c *metav1.Condition) Finding {
	f := Finding{ID: id, Severity: Error, Object: w.object(), Turn: "the agent of " + w.Cluster,
		Cause: "The agent does not know whether the work is " + strings.ToLower(condition) + ".",
		Fix:   []string{ShellCommand("kubectl", "hub", "work", "status", w.Name, "--clusters", w.Cluster, "-o", "wide")}}
	if c != nil {
		f.Since = since(c.LastTransitionTime)
		f.Cause += after(" It reports: ", c.Message)
	}
	return f
}

// forbidden sets whose permission is missing: the agent's, or that of the executor of the work.
func (w *workChain) forbidden(f *Finding) {
	f.ID = ManifestForbidden
	f.Turn = "an admin of the cluster " + w.Cluster + ", who grants the right to the agent"
	f.Fix = []string{"kubectl hub join --works admin --works-namespaces <NAMESPACES> --context <CONTEXT OF THE CLUSTER>"}
	if executor := w.work.Spec.Executor; executor != nil && executor.Subject.ServiceAccount != nil {
		account := executor.Subject.ServiceAccount
		f.Turn = "an admin of the cluster " + w.Cluster + ", who grants the right to the executor of the work"
		f.Cause += fmt.Sprintf(" The work only has the rights of its executor, the service account %s:%s.", account.Namespace, account.Name)
		f.Fix = []string{ShellCommand("kubectl", "create", "rolebinding", account.Name+"-works", "--clusterrole=admin", "--serviceaccount="+account.Namespace+":"+account.Name) +
			" -n <NAMESPACE> --context <CONTEXT OF THE CLUSTER>"}
	}
}

func (w *workChain) applied() outcome {
	return w.state(workv1.WorkApplied, "not applied", metav1.ConditionFalse, ManifestNotApplied)
}

func (w *workChain) available() outcome {
	return w.state(workv1.WorkAvailable, "not available", metav1.ConditionFalse, ManifestNotAvailable)
}

func (w *workChain) degraded() outcome {
	return w.state(workv1.WorkDegraded, "degraded", metav1.ConditionTrue, ManifestDegraded)
}
