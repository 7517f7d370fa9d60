// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestworkreplicaset

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apiauthor "github.com/clusterhub/clusterhub/pkg/apis/author"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/selector"
	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterv1beta2 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	workv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/setroles"
)

const (
	create    = "create"
	executeAs = "execute-as"

	// The times for which answers are valid. The revocation of a right stops a rollout after the first time at the latest; a new right is noticed
	// after the second, or the third if it is for one cluster only.
	allowedFor, deniedFor, deniedForCluster = 30 * time.Second, 2 * time.Minute, 10 * time.Minute
	// maxReviews is the maximum number of questions of one round, and askAgain the time until the next. So an author without rights, for 10,000
	// clusters, costs no more.
	maxReviews, askAgain = 50, time.Second
)

// author is the user who wrote the spec of a set, with the answers about that user's permissions.
type author struct {
	uid        types.UID
	generation int64
	recorded   string
	apiauthor.Author
	// unknown is the reason why nothing is allowed at all.
	unknown string
	answers map[question]cachedDecision
}

// question is a question of a SubjectAccessReview.
type question struct{ verb, group, resource, subresource, namespace, name string }

func (q question) String() string {
	text := q.verb + " " + q.resource
	if q.subresource != "" {
		text += "/" + q.subresource
	}
	if q.name != "" {
		text += fmt.Sprintf(" %q", q.name)
	}
	if q.namespace != "" {
		text += " in namespace " + q.namespace
	}
	return text
}

type cachedDecision struct {
	allowed bool
	at      time.Time
}

func (a cachedDecision) counts(q question, now time.Time) bool {
	switch since := now.Sub(a.at); {
	case a.allowed:
		return since < allowedFor
	case q.namespace != "":
		return since < deniedForCluster
	default:
		return since < deniedFor
	}
}

// authorOf returns the author of the current spec. Answers for another spec are dropped.
func authorOf(set *workv1alpha1.ManifestWorkReplicaSet, before *author) *author {
	recorded := set.Annotations[work.AuthorAnnotation]
	if before != nil && before.uid == set.UID && before.generation == set.Generation && before.recorded == recorded {
		return before
	}
	a := &author{uid: set.UID, generation: set.Generation, recorded: recorded, answers: map[question]cachedDecision{}}
	if json.Unmarshal([]byte(recorded), &a.Author) != nil || a.Username == "" {
		a.Author = apiauthor.Author{}
		a.unknown = "the author of the spec is not known, so nothing is written: write the spec again, such as with kubectl apply after a change"
	}
	return a
}

// rights are the permissions of an author, in one round.
type rights struct {
	*author
	r         *Reconciler
	namespace string
	// executor is the user as whom the works are executed, if the author needs a permission for it; otherwise it is empty.
	executor string
	left     int
	// sets are the selectors of the sets that are bound to the namespace. They are read when they are needed.
	sets map[string]labels.Selector
	// asksMore reports that the round needs more questions than it may ask.
	asksMore bool
}

func (r *Reconciler) rights(set *workv1alpha1.ManifestWorkReplicaSet, who *author) *rights {
	a := &rights{author: who, r: r, namespace: set.Namespace, left: maxReviews}
	if r.ChecksAgentExecutor {
		a.executor = work.AgentExecutor
	}
	if e := set.Spec.ManifestWorkTemplate.Executor; e != nil {
		a.executor = "system:serviceaccount::"
		if sa := e.Subject.ServiceAccount; sa != nil {
			a.executor = "system:serviceaccount:" + sa.Namespace + ":" + sa.Name
		}
	}
	return a
}

// deniedReason returns why the author may not write works of the set for a cluster. It is empty if the author may.
func (a *rights) deniedReason(ctx context.Context, cluster string) (refusal string, err error) {
	if a.unknown != "" {
		return a.unknown, nil
	}
	refusal, err = a.holds(ctx, create, "", cluster)
	if refusal != "" || err != nil || a.executor == "" {
		return refusal, err
	}
	return a.holds(ctx, executeAs, a.executor, cluster)
}

// holds checks the permission for all clusters, then for the sets of the cluster, then for the cluster: most authors have one for many.
func (a *rights) holds(ctx context.Context, verb, name, cluster string) (refusal string, err error) {
	// Permission (verb: create; name: none; namespace: none, for all clusters, or that of the cluster): works of a ManifestWorkReplicaSet are
	// written for its author. With an executor in the template, `execute-as` with the name of the executor is required, too; without one, with the feature gate
	// NilExecutorValidating, `execute-as` with the name `system:serviceaccount::klusterlet-work-sa`.
	works := question{verb: verb, group: workv1.GroupName, resource: "manifestworks", name: name}
	if allowed, err := a.review(ctx, works); allowed || err != nil {
		return "", err
	}
	sets, err := a.setsOf(ctx, cluster)
	if err != nil {
		return "", err
	}
	for _, set := range sets {
		// Permission (verb: create; name: a set that is bound to the namespace): works of a ManifestWorkReplicaSet are written for its author, to clusters
		// of the set. With an executor, `execute-as` with the name `SET:EXECUTOR` is required, too.
		bySet := question{verb: verb, group: clusterv1beta2.GroupName, resource: "managedclustersets", subresource: "manifestworks", name: set}
		if name != "" {
			bySet.name = set + ":" + name
		}
		if allowed, err := a.review(ctx, bySet); allowed || err != nil {
			return "", err
		}
	}
	works.namespace = cluster
	if allowed, err := a.review(ctx, works); allowed || err != nil {
		return "", err
	}
	if _, asked := a.answers[works]; !asked {
		return fmt.Sprintf("the rights of user %q have not been checked yet", a.Username), nil
	}
	refusal = fmt.Sprintf("user %q, the author of the spec, may not %s", a.Username, works)
	if name == work.AgentExecutor {
		refusal += ", which executes works without an executor: set an executor in the template that the user may execute as"
	}
	if len(sets) > 0 && verb == create {
		refusal += fmt.Sprintf(", and does not have the role %s of the set %s (kubectl hub grant %[2]s --role %[1]s)", setroles.Deployer, sets[0])
	}
	return refusal, nil
}

// review returns false without an error if the round may ask no more questions.
func (a *rights) review(ctx context.Context, q question) (bool, error) {
	now := a.r.clock.Now()
	if known, there := a.answers[q]; there && known.counts(q, now) {
		return known.allowed, nil
	}
	if a.left == 0 {
		a.asksMore = true
		return false, nil
	}
	a.left--
	allowed, err := kit.Allowed(ctx, a.r.client, &a.Author, authorizationv1.ResourceAttributes{
		Verb: q.verb, Group: q.group, Resource: q.resource, Subresource: q.subresource, Namespace: q.namespace, Name: q.name,
	})
	if err != nil {
		return false, err
	}
	a.answers[q] = cachedDecision{allowed: allowed, at: now}
	return allowed, nil
}

// setsOf returns the sets bound to the namespace that select a cluster. A permission for an unbound set does not count here.
func (a *rights) setsOf(ctx context.Context, cluster string) (names []string, err error) {
	c := &clusterv1.ManagedCluster{}
	if err := a.r.client.Get(ctx, types.NamespacedName{Name: cluster}, c); err != nil {
		return nil, kit.IgnoreGone(err)
	}
	if a.sets == nil {
		bindings := &clusterv1beta2.ManagedClusterSetBindingList{}
		if err := a.r.client.List(ctx, bindings, client.InNamespace(a.namespace)); err != nil {
			return nil, err
		}
		sets := map[string]labels.Selector{}
		for _, b := range bindings.Items {
			set := &clusterv1beta2.ManagedClusterSet{}
			if !b.DeletionTimestamp.IsZero() || b.Spec.ClusterSet != b.Name {
				continue
			}
			switch err := a.r.client.Get(ctx, types.NamespacedName{Name: b.Name}, set); {
			case kit.IsGone(err):
				continue
			case err != nil:
				return nil, err
			}
			if s, err := selector.ForV1beta2(set); err == nil {
				sets[b.Name] = s
			}
		}
		a.sets = sets
	}
	for set, s := range a.sets {
		if s.Matches(labels.Set(c.Labels)) {
			names = append(names, set)
		}
	}
	slices.Sort(names)
	return names, nil
}
