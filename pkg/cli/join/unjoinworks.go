// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/agent/work/withdraw"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	remote "github.com/clusterhub/clusterhub/pkg/remote/apply"
)

const (
	// progressInterval is the time for which works are finalized before the number of remaining works is printed.
	progressInterval = kit.QuietFor
	// maxFailures is the largest number of failures that are printed.
	maxFailures = 3
)

// brought are the works of an agent in its cluster, and the number of their objects in its records.
type brought struct {
	cluster        withdraw.Records
	agentID        string
	works, objects int
}

// agentID returns the agent's ID in its records. It returns "" for an agent that is not ours, whose records must not be deleted. Without a
// Deployment, it is the ID that join sets.
func (m *managed) agentID(ctx context.Context, have identity) (string, error) {
	if m.scoped {
		return deploy.AgentID(m.namespace), nil
	}
	deployment := &appsv1.Deployment{}
	if err := m.Get(ctx, m.key(deploy.AgentName), deployment); err != nil {
		return deploy.AgentID(m.namespace), m.Explain(client.IgnoreNotFound(err))
	}
	if !kit.Owner.Owns(deployment) {
		return "", nil
	}
	if id, ok := kit.AgentFlag(deployment, deploy.AgentIDFlag); ok {
		return id, nil
	}
	if server := have.server(); server != "" {
		return withdraw.AgentID(server), nil
	}
	return deploy.AgentID(m.namespace), nil
}

// brought is like listRecords, and returns an error if there are works and the user has not chosen what happens to them.
func (m *managed) brought(ctx context.Context, have identity, fate string) (b brought, err error) {
	b, err = m.listRecords(ctx, have)
	if err == nil && b.works > 0 && fate == "" {
		err = fmt.Errorf("the agent has applied %s to this cluster: choose by --%s=%s or --%[2]s=%[4]s what happens to the objects, or delete the "+
			"works on the hub first, while the agent runs", &b, worksFlag, withdraw.Delete, withdraw.Keep)
	}
	return b, err
}

// listRecords reads the records of the agent, for any of the hub's addresses.
func (m *managed) listRecords(ctx context.Context, have identity) (b brought, err error) {
	b.agentID, err = m.agentID(ctx, have)
	if err != nil {
		return b, err
	}
	if m.scoped {
		b.cluster, err = withdraw.NewNamespaced(m.Config, m.namespace)
	} else {
		b.cluster, err = withdraw.New(m.Config)
	}
	if err != nil {
		return b, err
	}
	own, _, err := b.cluster.Records(ctx, b.agentID)
	if err != nil {
		return b, m.Explain(err)
	}
	b.works = len(own)
	for _, record := range own {
		b.objects += record.Objects
	}
	return b, nil
}

func (b *brought) String() string {
	return fmt.Sprintf("%s with %s", counted(b.works, "work"), counted(b.objects, "object"))
}

func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// worksEnding has the result for works, for programs.
type worksEnding struct {
	Works   int    `json:"works"`
	Objects int    `json:"objects"`
	Fate    string `json:"fate"`
}

func (b *brought) ending(fate string) *worksEnding {
	if b.works == 0 {
		return nil
	}
	return &worksEnding{b.works, b.objects, fate}
}

// describe describes the result for works, for users.
func (b *brought) describe(fate string) string {
	switch {
	case b.works == 0:
		return ""
	case withdraw.Fate(fate) == withdraw.Keep:
		return fmt.Sprintf("The objects of its works are kept: %s.\n", b)
	}
	return fmt.Sprintf("The objects of its works are deleted: %s.\n", b)
}

// warnOfRemainingWorks warns about the works that stay of an agent that no longer applies works.
func (m *managed) warnOfRemainingWorks(ctx context.Context) error {
	have, err := m.identity(ctx)
	if err != nil {
		return err
	}
	b, err := m.listRecords(ctx, have)
	if err == nil && b.works > 0 {
		m.Warn("%s stay in the cluster unchanged, and no longer follow the hub: a later join with --%s resumes them, and unjoin "+
			"removes them", &b, worksFlag)
	}
	return err
}

// finalizeWorks stops the agent, which would apply works again, and finalizes its works.
func (m *managed) finalizeWorks(ctx context.Context, b brought, fate withdraw.Fate) error {
	if b.works == 0 {
		return nil
	}
	if err := m.stopAgent(ctx); err != nil {
		return err
	}
	what := "the objects of works to be deleted"
	if fate == withdraw.Keep {
		what = "the objects of works to be orphaned"
	}
	e := &ending{brought: b, fate: fate, failed: map[types.UID]error{}}
	return m.Await(ctx, what, e.poll)
}

func (m *managed) stopAgent(ctx context.Context) error {
	deployment := &appsv1.Deployment{}
	err := m.Get(ctx, m.key(deploy.AgentName), deployment)
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return m.Explain(err)
	default:
		if err := m.scale(ctx, deployment, 0); err != nil {
			return err
		}
	}
	return m.awaitGone(ctx, "the agent to stop", &corev1.PodList{}, client.MatchingLabels{deploy.AgentLabel: deploy.AgentName})
}

// ending is the deletion of all works of an agent.
type ending struct {
	brought
	fate withdraw.Fate
	// failed are the records that cannot be finalized, and why. They do not delay others.
	failed map[types.UID]error
}

// poll finalizes records for a limited time, and returns how many are left.
func (e *ending) poll(ctx context.Context) (done bool, state string, err error) {
	began := time.Now()
	own, _, err := e.cluster.Records(ctx, e.agentID)
	if err != nil {
		return false, "", err
	}
	left, why := len(own), ""
	for _, record := range own {
		if time.Since(began) > progressInterval || ctx.Err() != nil {
			break
		}
		if e.failed[record.UID()] != nil {
			continue
		}
		waits, err := e.cluster.End(ctx, record, e.fate)
		switch {
		case err != nil && !kit.IsTemporary(err) && ctx.Err() == nil:
			e.failed[record.UID()] = err
		case err != nil:
			waits = err.Error()
		case waits == "":
			left--
		}
		why = waits
	}
	if left > len(e.failed) {
		return false, counted(left, "work") + " left" + kit.Prefixed(", ", why), nil
	}
	return left == 0, "", e.failure()
}

// failure returns the first errors, in a stable order.
func (e *ending) failure() error {
	var all []error
	for _, err := range e.failed {
		all = append(all, err)
	}
	slices.SortFunc(all, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	if len(all) > maxFailures {
		all = append(all[:maxFailures], fmt.Errorf("and %d more", len(all)-maxFailures))
	}
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("%s cannot be removed (fix the cause, and run unjoin again): %w", counted(len(e.failed), "work"), errors.Join(all...))
}

// removable returns the deployable objects that must not stay.
func (m *managed) removable(ctx context.Context) ([]*unstructured.Unstructured, error) {
	objects, err := m.deployable(ctx)
	if err == nil && m.keep != nil {
		objects = slices.DeleteFunc(objects, m.keep)
	}
	return objects, err
}

// deployable returns all objects that join can have created here, in the order of creation. It omits the definition of AppliedManifestWorks while any
// agent has records: deleting the definition would delete all records, and the objects that they own.
func (m *managed) deployable(ctx context.Context) ([]*unstructured.Unstructured, error) {
	if m.scoped {
		return completeAgent(m, deploy.Works{}).Objects()
	}
	objects, err := completeAgent(m, deploy.Works{Role: worksAdmin}).Objects()
	if err != nil {
		return nil, err
	}
	there, err := m.worksObjects(ctx)
	if err != nil {
		return nil, err
	}
	known := idsOf(objects)
	for _, o := range there {
		if !known.Has(remote.IDOf(o)) {
			objects = slices.Insert(objects, len(objects)-1, o.(*unstructured.Unstructured)) // the Deployment is the last
		}
	}
	b, err := m.listRecords(ctx, identity{})
	if err != nil {
		return nil, err
	}
	own, others, err := b.cluster.Records(ctx, b.agentID)
	if err != nil {
		return nil, m.Explain(err)
	}
	if len(own)+others > 0 {
		objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return remote.IDOf(o).GroupKind == kit.CRDKind })
	}
	return objects, nil
}
