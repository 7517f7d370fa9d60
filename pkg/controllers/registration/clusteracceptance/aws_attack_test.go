// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteracceptance

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver/awsirsa"
	"github.com/clusterhub/clusterhub/pkg/irsa"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// The annotations of a cluster are written by its agent. The cluster gets what belongs to its ARN, or a reason why not, and never anything of
// another cluster.
func TestAWS_AnnotationsAreNotTrusted(t *testing.T) {
	const account = "arn:aws:eks:us-west-2:210987654321:cluster/"
	for name, test := range map[string]struct {
		annotations map[string]string
		want        string
	}{
		"no ARN":             {map[string]string{registration.AnnotationManagedClusterARN: "c2"}, `"c2" is not the ARN of an EKS cluster`},
		"a part of one":      {map[string]string{registration.AnnotationManagedClusterARN: "arn:aws:eks:us-west-2"}, "parts between colons"},
		"of a role":          {map[string]string{registration.AnnotationManagedClusterARN: "arn:aws:iam::123456789012:role/admin"}, "its service is"},
		"of no account":      {map[string]string{registration.AnnotationManagedClusterARN: "arn:aws:eks:us-west-2::cluster/c2"}, "its account is"},
		"of another form":    {map[string]string{registration.AnnotationManagedClusterARN: account + "c2/c3"}, "is not the name of an EKS cluster"},
		"with a separator":   {map[string]string{registration.AnnotationManagedClusterARN: account + "c2#123456789012#hub"}, "is not the name of an EKS cluster"},
		"with a wildcard":    {map[string]string{registration.AnnotationManagedClusterARN: account + "*"}, "is not the name of an EKS cluster"},
		"with a policy":      {map[string]string{registration.AnnotationManagedClusterARN: account + `c2"},"Principal":"*`}, "is not the name of an EKS cluster"},
		"with a line's end":  {map[string]string{registration.AnnotationManagedClusterARN: account + "c2\n"}, "is not the name of an EKS cluster"},
		"of many characters": {map[string]string{registration.AnnotationManagedClusterARN: account + strings.Repeat("x", 100_000)}, "is not the name of an EKS cluster"},
		"of another partition": {map[string]string{registration.AnnotationManagedClusterARN: "arn:aws-cn:eks:cn-north-1:210987654321:cluster/c1"},
			"the cluster is in the AWS partition aws-cn and the hub in aws"},
		"of a partition that the region is not in": {map[string]string{registration.AnnotationManagedClusterARN: "arn:aws:eks:cn-north-1:210987654321:cluster/c1"},
			"the region cn-north-1 is in the partition aws-cn"},
		"of a cluster that has joined": {map[string]string{registration.AnnotationManagedClusterARN: account + "c2"},
			`of the EKS cluster c2 of the AWS account 210987654321, belongs to the cluster "c2"`},
		"of one that has joined, in another region": {map[string]string{registration.AnnotationManagedClusterARN: "arn:aws:eks:eu-west-1:210987654321:cluster/c2"},
			`of the EKS cluster c2 of the AWS account 210987654321, belongs to the cluster "c2"`},
		"two of them": {map[string]string{registration.AnnotationManagedClusterARN: account + "c1", registration.AnnotationManagedClusterARNOfSeed: account + "c2"},
			"name different clusters"},
		"the suffix of another": {map[string]string{registration.AnnotationManagedClusterARN: account + "c1",
			registration.AnnotationRoleSuffix: irsa.Suffix("123456789012", "hub", "210987654321", "c2")}, "the agent and the hub have different ARNs of the hub"},
		// The holder of a bootstrap token created the cluster with its own ARN, and an admin expects a certificate.
		"an ARN, and who accepts it names who asks for its certificate": {map[string]string{registration.AnnotationManagedClusterARN: account + "c1",
			registration.AnnotationRequesters: "system:bootstrap:abcdef"}, "contradict each other"},
		"an ARN, and who accepts it names its key": {map[string]string{registration.AnnotationManagedClusterARN: account + "c1",
			registration.AnnotationAgentKey: strings.Repeat("a", 64)}, "contradict each other"},
		"a suffix that is none": {map[string]string{registration.AnnotationManagedClusterARN: account + "c1", registration.AnnotationRoleSuffix: "../admin"},
			"the agent and the hub have different ARNs of the hub"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newAWSFixture(t, awsirsa.AccessEntry, "c1", "c2")
			f.settle("c2")
			f.change("c1", func(c *clusterv1.ManagedCluster) { c.Annotations = test.annotations })
			f.aws.ResetCalls()
			for range 5 {
				if _, err := f.reconcile("c1"); err != nil {
					t.Fatal(err)
				}
			}
			got := f.accepted("c1")
			if !strings.HasPrefix(got, "False Error ") || !strings.Contains(got, test.want) || strings.Contains(got, "\n") || len(got) > 1200 {
				t.Errorf("condition %q, want %q", got, test.want)
			}
			f.change("c1", deny)
			f.settle("c1")
			deleteCluster(f.fixture)
			f.settle("c1")
			if writes := f.aws.Writes(); len(writes) > 0 {
				t.Errorf("AWS was changed: %v", writes)
			}
			if diff := cmp.Diff(f.granted("c2"), f.inAWS()); diff != "" {
				t.Errorf("in AWS (-want +got):\n%s", diff)
			}
		})
	}
}

// Once a cluster is accepted, changes by its agent have no effect: checks and revocation use the record.
func TestAWS_LaterAnnotationsAreIgnored(t *testing.T) {
	for name, change := range map[string]func(f *awsFixture, annotations map[string]string){
		"the ARN of another": func(f *awsFixture, a map[string]string) { a[registration.AnnotationManagedClusterARN] = f.arn("c2") },
		"the suffix of another": func(f *awsFixture, a map[string]string) {
			a[registration.AnnotationRoleSuffix] = strings.TrimPrefix(f.hubRole("c2"), "ocm-hub-")
		},
		"a new ARN":       func(f *awsFixture, a map[string]string) { a[registration.AnnotationManagedClusterARN] = f.arn("c3") },
		"a malformed ARN": func(_ *awsFixture, a map[string]string) { a[registration.AnnotationManagedClusterARN] = "arn" },
		"no ARN":          func(_ *awsFixture, a map[string]string) { delete(a, registration.AnnotationManagedClusterARN) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newAWSFixture(t, awsirsa.AccessEntry, "c1", "c2")
			f.settle("c1")
			f.settle("c2")
			both := sorted(f.granted("c1"), f.granted("c2"))
			f.change("c1", func(c *clusterv1.ManagedCluster) { change(f, c.Annotations) })
			f.aws.ResetCalls()
			f.restart()
			f.settle("c1")
			f.nextCheck("c1")
			if diff := cmp.Diff(both, f.inAWS()); diff != "" || len(f.aws.Writes()) > 0 || f.aws.Count("iam:GetRole") == 0 {
				t.Errorf("calls %v, in AWS (-want +got):\n%s", f.aws.Calls(), diff)
			}
			if got := f.accepted("c1"); !strings.HasPrefix(got, "True HubClusterAdminAccepted Accepted by hub cluster admin. The cluster would now be accepted with another identity") {
				t.Errorf("condition %q", got)
			}
			deleteCluster(f.fixture)
			f.settle("c1")
			if diff := cmp.Diff(f.granted("c2"), f.inAWS()); diff != "" {
				t.Errorf("in AWS (-want +got):\n%s", diff)
			}
		})
	}
}

// An admin accepts two clusters with one ARN, and the cache has neither record when each is reconciled. No process can know which of them is right:
// neither gets the role until one of them is denied.
func TestAWS_ConcurrentAcceptanceOfOneARNGrantsNeither(t *testing.T) {
	f := newAWSFixture(t, awsirsa.AccessEntry, "c1")
	f.join("x", f.arn("c1"))
	fresh := f.process.client
	f.process.client = interceptor.NewClient(f.client.(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, ok := list.(*corev1.ConfigMapList); ok {
				return nil
			}
			return c.List(ctx, list, opts...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, ok := obj.(*corev1.ConfigMap); ok {
				return apierrors.NewNotFound(corev1.Resource("configmaps"), key.Name)
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
	for _, name := range []string{"c1", "x", "c1", "x"} {
		if _, err := f.reconcile(name); err != nil {
			t.Fatal(err)
		}
	}
	for name, other := range map[string]string{"c1": "x", "x": "c1"} {
		if got := f.accepted(name); !strings.HasPrefix(got, "False Error ") || !strings.Contains(got, `the cluster "`+other+`", which is accepted, too`) {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := f.inAWS(); len(got) > 0 {
		t.Errorf("in AWS: %v", got)
	}
	f.process.client = fresh
	f.change("x", deny)
	f.settle("x")
	f.settle("c1")
	if diff := cmp.Diff(f.granted("c1"), f.inAWS()); diff != "" {
		t.Errorf("in AWS (-want +got):\n%s", diff)
	}
}
