// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package labels implements the task that sets labels of the ManagedCluster, by which the hub selects it for sets.
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
	// interval is the time between two checks, less a quarter at most. Each check writes at most once, so that a label that changes all the time
	// moves the cluster between sets no more often.
	interval = 5 * time.Minute
	// annotation is the annotation of the ManagedCluster with the keys that the agent has set, so that both are written at once.
	annotation = registration.AgentAnnotationPrefix + "cluster-labels"
	// reasonRefused: the hub does not allow the agent to set its labels.
	reasonRefused = "ClusterLabelsRefused"
)

// Options configure the task.
type Options struct {
	// Labels are the labels of the flags. They have priority over detected ones.
	Labels map[string]string
	// Detect makes the agent detect where the cluster runs: region, cloud and vendor.
	Detect bool
	// Own is the managed cluster.
	Own *spoke.Cluster
	// Tell records an event for an admin of the agent.
	Tell func(ctx context.Context, eventType, reason, message string)
}

// Validate returns all errors of the labels of the flags.
func (o *Options) Validate() (errs []error) {
	for _, err := range registration.CheckClusterLabels(o.Labels) {
		errs = append(errs, fmt.Errorf("--cluster-labels: %w", err))
	}
	return errs
}

// New returns the task. Without labels it removes those that the agent has set before, and is done.
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
					err := l.sync(ctx, s)
					if err == nil && len(o.Labels) == 0 && !o.Detect {
						done() // the task is done
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

// sync compares the labels on the hub with the desired ones, and writes the difference.
func (l *labeller) sync(ctx context.Context, s task.Session) error {
	var detected map[string]string
	if l.Detect {
		var err error
		detected, err = detect(ctx, l.Own.Client)
		if err != nil {
			return fmt.Errorf("detecting where the cluster runs: %w", err)
		}
	}
	clusters := s.Hub.Clusters.ClusterV1().ManagedClusters()
	var refused error
	// Another task and the hub write the status.
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
			refused = fmt.Errorf("the hub forbids this agent to set the labels %s: ask an admin of the hub for the RBAC rule that is missing, or to add "+
				"the keys to --agent-labels of hub-apiserver: %w", desired(next), err)
			return nil
		}
		return err
	})
	text := ""
	if refused != nil {
		text = refused.Error()
	}
	if l.said.Again("refused", text) && text != "" {
		l.Tell(ctx, corev1.EventTypeWarning, reasonRefused, text[:min(len(text), maxMessage)])
	}
	if err == nil {
		err = refused
	}
	return err
}

// maxMessage is the maximum length of the message of an event, in bytes.
const maxMessage = 1024

func desired(c *clusterv1.ManagedCluster) string { return c.Annotations[annotation] }

// labelled returns the cluster with its desired labels, and whether that changes it. Labels that the agent has not set stay unchanged.
func (l *labeller) labelled(have *clusterv1.ManagedCluster, detected map[string]string) (next *clusterv1.ManagedCluster, changed bool) {
	want := map[string]string{}
	next = have.DeepCopy()
	for key := range strings.SplitSeq(have.Annotations[annotation], ",") {
		value, there := have.Labels[key]
		// A label that cannot be detected at the moment, such as the region of a cluster without nodes, is unchanged.
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
