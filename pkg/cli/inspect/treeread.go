// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	openmcpv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	viewv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/view/v1alpha1"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/command/paging"
	"github.com/clusterhub/clusterhub/pkg/inspect"
	"github.com/clusterhub/clusterhub/pkg/inspect/tree"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const (
	// pageOfWorks is the number of works in a page: they may be large.
	pageOfWorks = 50
	// fewClusters is the largest number of clusters whose works are listed one by one, which needs no permission to list those of all.
	fewClusters = 20
	// maxNamespaces is the largest number of namespaces that are listed for a user who may not list the works of all.
	maxNamespaces = 100
)

// treeReader reads what a user may see.
type treeReader struct {
	*kit.HubClient
	// whole keeps all details of healthy objects.
	whole bool
	now   time.Time
}

// hidden reports whether an error is about missing permissions, or about a kind that the hub does not serve. Then the rest of the tree is shown.
func hidden(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) }

// refusal matches the message of RBAC for a forbidden request.
var refusal = regexp.MustCompile(`User "[^"]*" (cannot [^()]*)`)

// why returns a short form of an error: the missing permission if the error is about one.
func why(err error) string {
	if said := refusal.FindStringSubmatch(err.Error()); said != nil {
		return "you " + strings.TrimSpace(said[1])
	}
	return err.Error()
}

// addHidden notes in the tree what is hidden. It returns other errors.
func addHidden(n *tree.Node, what string, err error) error {
	if !hidden(err) {
		return err
	}
	n.Unseen = append(n.Unseen, fmt.Sprintf("%s: %s", what, why(err)))
	return nil
}

func (o *treeOptions) readSet(name string) func(context.Context, *treeReader) (*tree.Node, error) {
	return func(ctx context.Context, r *treeReader) (*tree.Node, error) {
		// An empty list of members does not show whether the set exists.
		if _, err := r.Clusters.ClusterV1beta2().ManagedClusterSets().Get(ctx, name, metav1.GetOptions{}); err != nil {
			return nil, err
		}
		root := &tree.Node{Kind: tree.KindSet, Name: name, Health: inspect.Health{State: inspect.Healthy}}
		found := map[string]*tree.Node{}
		selector := ""
		err := r.EachMember(ctx, kit.MembersOfSet(name), func(m *viewv1alpha1.ClusterSetMember) {
			if found[m.Spec.Cluster] == nil {
				found[m.Spec.Cluster] = tree.Member(m)
				root.Add(found[m.Spec.Cluster])
			}
			selector = m.Status.SelectedBy.Selector
		})
		if err != nil {
			return nil, err
		}
		root.Message = countStates(root)
		if len(found) == 0 {
			return root, nil
		}
		if r.whole || root.Worst() != inspect.Healthy {
			if err := addHidden(root, "the time and reason of unavailable clusters", r.addStates(ctx, selector, found)); err != nil {
				return nil, err
			}
			root.Message = countStates(root)
		}
		return root, r.addWorks(ctx, root, found, "", nil)
	}
}

// countStates returns the number of clusters in each state.
func countStates(root *tree.Node) string {
	counts := root.Counts(tree.KindCluster)
	total := 0
	for _, n := range counts {
		total += n
	}
	text := kit.ClusterCount(total)
	for _, part := range []struct {
		state inspect.HealthState
		is    string
	}{{inspect.Healthy, "available"}, {inspect.Unhealthy, "not available"}, {inspect.Unknown, "unknown"}, {inspect.Progressing, "on the way"}} {
		if n := counts[part.state]; n > 0 {
			text += fmt.Sprintf(", %d %s", n, part.is)
		}
	}
	return text
}

// addStates adds the state of the clusters themselves. Members have the state without reasons.
func (r *treeReader) addStates(ctx context.Context, selector string, found map[string]*tree.Node) error {
	_, err := kit.Reach(r.HubClient, func(c kit.ManagedClusters) (any, error) {
		return nil, paging.EachItem(ctx, c.List, metav1.ListOptions{LabelSelector: selector}, func(c *clusterv1.ManagedCluster) error {
			if n := found[c.Name]; n != nil {
				*n = *tree.Cluster(c)
			}
			return nil
		})
	})
	return err
}

// addWorks adds the works on clusters: all at once or, for a user who may not list those, cluster by cluster.
func (r *treeReader) addWorks(ctx context.Context, root *tree.Node, found map[string]*tree.Node, selector string, matches func(*workv1.ManifestWork) bool) error {
	if len(found) > fewClusters {
		err := r.eachWork(ctx, metav1.NamespaceAll, found, selector, matches)
		if !hidden(err) {
			return err
		}
	}
	names := slices.Sorted(maps.Keys(found))
	var denied []string
	var reason error
	for i, name := range names {
		if i == maxNamespaces {
			root.Unseen = append(root.Unseen, fmt.Sprintf("the works on %s: you may not list manifestworks in all namespaces, and no more than %d are checked one by one",
				kit.ClusterCount(len(names)-i), i))
			break
		}
		err := r.eachWork(ctx, name, found, selector, matches)
		if !hidden(err) && err != nil {
			return err
		}
		if err != nil {
			denied, reason = append(denied, name), cmp.Or(reason, err)
		}
	}
	switch {
	case len(denied) == 1:
		root.Unseen = append(root.Unseen, fmt.Sprintf("the works on %s: %s", denied[0], why(reason)))
	case len(denied) > 1:
		root.Unseen = append(root.Unseen, fmt.Sprintf("the works on %s, such as %s: %s", kit.ClusterCount(len(denied)), denied[0], why(reason)))
	}
	return nil
}

func (r *treeReader) eachWork(ctx context.Context, namespace string, found map[string]*tree.Node, selector string, matches func(*workv1.ManifestWork) bool) error {
	options := metav1.ListOptions{Limit: pageOfWorks, LabelSelector: selector}
	return paging.EachItem(ctx, r.Clusters.WorkV1().ManifestWorks(namespace).List, options, func(w *workv1.ManifestWork) error {
		on := found[w.Namespace]
		if on == nil || matches != nil && !matches(w) {
			return nil
		}
		state := on.State
		if on.Reason == inspect.ReasonNotSeen {
			state = inspect.Healthy // no problem is known
		}
		node := tree.Work(w, state)
		if !r.whole {
			node = tree.Close(node)
		}
		on.Add(node)
		return nil
	})
}

func (o *treeOptions) readCluster(name string) func(context.Context, *treeReader) (*tree.Node, error) {
	return func(ctx context.Context, r *treeReader) (*tree.Node, error) {
		var root *tree.Node
		c, err := kit.Reach(r.HubClient, func(c kit.ManagedClusters) (*clusterv1.ManagedCluster, error) { return c.Get(ctx, name) })
		if err != nil && !apierrors.IsForbidden(err) {
			return nil, err
		}
		var sets []*tree.Node
		listErr := r.EachMember(ctx, fields.OneTermEqualSelector("spec.cluster", name), func(m *viewv1alpha1.ClusterSetMember) {
			if root == nil && err != nil {
				root = tree.Member(m)
			}
			sets = append(sets, tree.SetOf(m))
		})
		switch {
		case err == nil:
			root = tree.Cluster(c)
			root.Add(tree.Conditions(c)...)
		case root == nil:
			return nil, err // the user may see neither the cluster nor a member
		default:
			c = &clusterv1.ManagedCluster{}
			root.Unseen = append(root.Unseen, fmt.Sprintf("the conditions of the cluster: %s", why(err)))
		}
		listErr = addHidden(root, "the sets", listErr)
		if listErr != nil {
			return nil, listErr
		}
		lease, err := r.Kube.CoordinationV1().Leases(name).Get(ctx, registration.LeaseName, metav1.GetOptions{})
		switch {
		case err == nil:
			root.Add(tree.Lease(c, lease, r.now))
		case !apierrors.IsNotFound(err):
			if err := addHidden(root, "when the agent last renewed its lease", err); err != nil {
				return nil, err
			}
		}
		root.Add(sets...)
		if err := r.addNamespace(ctx, root, c); err != nil {
			return nil, err
		}
		return root, r.addWorks(ctx, root, map[string]*tree.Node{name: root}, "", nil)
	}
}

// addNamespace adds the namespace of a cluster on the hub, the requests in it, and the namespaces in the cluster.
func (r *treeReader) addNamespace(ctx context.Context, root *tree.Node, c *clusterv1.ManagedCluster) error {
	var node *tree.Node
	namespace, err := r.Kube.CoreV1().Namespaces().Get(ctx, root.Name, metav1.GetOptions{})
	switch {
	case err == nil:
		node = tree.Namespace(root.Name, namespace)
	case apierrors.IsNotFound(err) && c.Spec.HubAcceptsClient:
		node = tree.Namespace(root.Name, nil)
	case !apierrors.IsNotFound(err):
		if err := addHidden(root, "the namespace of the cluster on the hub", err); err != nil {
			return err
		}
	}
	root.Add(node)
	err = paging.EachItem(ctx, r.Clusters.OpenMCPV1alpha1().AccessRequests(root.Name).List, metav1.ListOptions{}, func(request *openmcpv1alpha1.AccessRequest) error {
		root.Add(tree.AccessRequest(request))
		return nil
	})
	root.Add(tree.ManagedNamespaces(c, root.State)...)
	return addHidden(root, "the access requests", err)
}
