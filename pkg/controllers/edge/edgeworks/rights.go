// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edgeworks

import (
	"context"
	"encoding/json"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/author"
	clusterv1beta2 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

// checkExecutor returns the reason why a work without an executor is refused, or an empty string: with the feature gate NilExecutorValidating, the authors
// of the policy or pattern and of each EdgeService it delivers need the permission that the author of a ManifestWorkReplicaSet needs. The permission is
// checked before each write only, so that a work that was delivered stays if it is revoked.
func (r *Reconciler) checkExecutor(ctx context.Context, node string, d *decided) (refusal string, err error) {
	if !r.ChecksAgentExecutor {
		return "", nil
	}
	refusal, err = r.authorMayExecute(ctx, node, d.sets, d.author, "its policy or pattern")
	if refusal != "" || err != nil {
		return refusal, err
	}
	allowed := map[string]bool{d.author: true}
	for _, service := range d.services {
		record := service.Annotations[edgev1alpha1.AuthorAnnotation]
		if allowed[record] {
			continue
		}
		what := fmt.Sprintf("EdgeService %s/%s", service.Namespace, service.Name)
		refusal, err = r.authorMayExecute(ctx, node, d.sets, record, what)
		if refusal != "" || err != nil {
			return refusal, err
		}
		allowed[record] = true
	}
	return "", nil
}

// authorMayExecute returns the reason why the recorded author of an object lacks the permission for the node, or an empty string.
func (r *Reconciler) authorMayExecute(ctx context.Context, node string, sets []string, record, object string) (refusal string, err error) {
	who := author.Author{}
	if json.Unmarshal([]byte(record), &who) != nil || who.Username == "" {
		return "unknown author of the spec of " + object + ": write it again, such as with kubectl apply after a change", nil
	}
	// Permission (verb: execute-as; name: `system:serviceaccount::klusterlet-work-sa`; namespace: none, for all nodes, or that of the cluster): with the feature gate
	// NilExecutorValidating, services are delivered for the authors of a DeploymentPolicy or DeploymentPattern and of its EdgeServices.
	works := authorizationv1.ResourceAttributes{Verb: "execute-as", Group: workv1.GroupName, Resource: "manifestworks", Name: work.AgentExecutor}
	questions := []authorizationv1.ResourceAttributes{works}
	for _, set := range sets {
		// Permission (verb: execute-as; name: `SET:system:serviceaccount::klusterlet-work-sa`, a set that is bound to the namespace): with the feature
		// gate NilExecutorValidating, services are delivered to nodes of the set for such authors.
		questions = append(questions, authorizationv1.ResourceAttributes{Verb: works.Verb, Group: clusterv1beta2.GroupName,
			Resource: "managedclustersets", Subresource: "manifestworks", Name: set + ":" + works.Name})
	}
	works.Namespace = node
	for _, q := range append(questions, works) {
		if allowed, err := kit.Allowed(ctx, r.client, &who, q); allowed || err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("user %q, the author of the spec of %s, may not %s %s %q in namespace %s", who.Username, object,
		works.Verb, works.Resource, works.Name, node), nil
}
