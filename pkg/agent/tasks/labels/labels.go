// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package labels is the task that labels the ManagedCluster, by which the hub puts it into sets.
package labels

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/clusterhub/clusterhub/pkg/agent/hub"
	"github.com/clusterhub/clusterhub/pkg/agent/management"
	"github.com/clusterhub/clusterhub/pkg/agent/repeat"
	"github.com/clusterhub/clusterhub/pkg/agent/rights"
	"github.com/clusterhub/clusterhub/pkg/agent/spoke"
	"github.com/clusterhub/clusterhub/pkg/agent/task"
	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const (
	// interval is the time between two looks, less a quarter at most. Each writes once, so that a label that comes and goes moves no
	// cluster more often.
	interval = 5 * time.Minute
	// annotation has the keys that the agent has set, in the ManagedCluster, so that it is written with them.
	annotation = registration.AgentAnnotationPrefix + "cluster-labels"
	// reasonRefused is that of the event that says that the hub does not let the agent set its labels.
	reasonRefused = "ClusterLabelsRefused"
)

// Options are what the task works with.
type Options struct {
	// Labels are those of the flags. They count more than what is detected.
	Labels map[string]string
	// Detect has the cluster say where it runs: region, cloud and vendor.
	Detect bool
	// Own is the managed cluster.
	Own *spoke.Cluster
	// Tell says something that an admin of the agent should know.
	Tell func(ctx context.Context, eventType, reason, message string)
}

// Validate says what is wrong with the labels of the flags.
func (o *Options) Validate() (errs []error) {
	for _, err := range registration.CheckClusterLabels(o.Labels) {
		errs = append(errs, fmt.Errorf("--cluster-labels: %w", err))
	}
	return errs
}

// New returns the task. Without labels it takes away those that the agent has set before, and is done.
func New(o Options) task.Task {
	const what = "labelling the cluster"
	l := &labeller{Options: o}
	needs := rights.Rights{Hub: rights.Rules{Cluster: []rbacv1.PolicyRule{rights.Rule(clusterv1.GroupName, "managedclusters", "get", "update")}}}
	if o.Detect {
		needs.Own.Cluster = []rbacv1.PolicyRule{rights.Rule("", "nodes", "list")}
	}
	return task.Task{
		Name: what, Rights: rights.Sum(needs, management.TellRights),
		Run: func(ctx context.Context, s task.Session) error {
			ctx, done := context.WithCancel(ctx)
			defer done()
			loop := &task.Loop{What: what, Interval: func() time.Duration { return interval }, Timeout: 2 * hub.RequestTimeout, Random: s.Random,
				Do: func(ctx context.Context) error {
					err := l.look(ctx, s)
					if err == nil && len(o.Labels) == 0 && !o.Detect {
						done() // nothing is left to do
					}
					return err
				}}
			return loop.Run(ctx)
		},
	}
}

type labeller struct {
	Options
	said repeat.Said
}

// look compares the labels that the hub has with those that are wanted, and writes the difference.
func (l *labeller) look(ctx context.Context, s task.Session) error {
	var detected map[string]string
	if l.Detect {
		var err error
		if detected, err = detect(ctx, l.Own.Client); err != nil {
			return fmt.Errorf("looking where the cluster runs: %w", err)
		}
	}
	clusters := s.Hub.Clusters.ClusterV1().ManagedClusters()
	var refused error
	// The status is written by another task, and by the hub.
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		cluster, err := clusters.Get(ctx, s.State.ClusterName, metav1.GetOptions{})
		if err != nil {
			return hub.Refused(err)
		}
		next, changed := l.labelled(cluster, detected)
		if !changed {
			return nil
		}
		_, err = clusters.Update(ctx, next, metav1.UpdateOptions{})
		if apierrors.IsForbidden(err) {
			refused = fmt.Errorf("the hub does not let this agent set the labels %s: ask an admin of the hub for the RBAC rule that is missing, or to add "+
				"the keys to --agent-labels of hub-apiserver: %w", wanted(next), err)
			return nil
		}
		return err
	})
	text := ""
	if refused != nil {
		text = refused.Error()
	}
	if l.said.Again("refused", text) && text != "" {
		l.Tell(ctx, corev1.EventTypeWarning, reasonRefused, text[:min(len(text), longestMessage)])
	}
	if err == nil {
		err = refused
	}
	return err
}

// longestMessage is the longest that an event may have.
const longestMessage = 1024

func wanted(c *clusterv1.ManagedCluster) string { return c.Annotations[annotation] }

// labelled is the cluster with the labels that it should have, and whether that changes it. Labels that the agent has not set
// are left alone.
func (l *labeller) labelled(have *clusterv1.ManagedCluster, detected map[string]string) (next *clusterv1.ManagedCluster, changed bool) {
	want := map[string]string{}
	next = have.DeepCopy()
	for key := range strings.SplitSeq(have.Annotations[annotation], ",") {
		value, there := have.Labels[key]
		// What is not known just now, such as where the nodes are of a cluster that has none, is as it was.
		if there && l.Detect && slices.Contains(detectable, key) {
			want[key] = value
		}
		delete(next.Labels, key)
	}
	maps.Copy(want, detected)
	maps.Copy(want, l.Labels)
	for key, value := range want {
		metav1.SetMetaDataLabel(&next.ObjectMeta, key, value)
	}
	if len(want) > 0 {
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, annotation, strings.Join(slices.Sorted(maps.Keys(want)), ","))
	} else {
		delete(next.Annotations, annotation)
	}
	return next, !maps.Equal(next.Labels, have.Labels) || next.Annotations[annotation] != have.Annotations[annotation]
}
