// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
)

func (w *world) entry(t *testing.T, c clients, arn string, change func(*eks.CreateAccessEntryInput)) (*eks.CreateAccessEntryOutput, error) {
	in := &eks.CreateAccessEntryInput{ClusterName: aws.String("hub"), PrincipalArn: &arn}
	if change != nil {
		change(in)
	}
	return c.eks.CreateAccessEntry(t.Context(), in)
}

func TestAccessEntry_Lifecycle(t *testing.T) {
	w := newWorld(t)
	c, arn, hub := w.root.eks, w.createRole(t, "ocm-hub-1"), aws.String("hub")
	begin := time.Now().Add(-2 * time.Second)
	made := must(w.entry(t, w.root, arn, func(in *eks.CreateAccessEntryInput) {
		in.Username, in.KubernetesGroups, in.Tags = aws.String("cluster1"), []string{"open-cluster-management:cluster1"}, map[string]string{"a": "b"}
	}))(t).AccessEntry
	got := must(c.DescribeAccessEntry(t.Context(), &eks.DescribeAccessEntryInput{ClusterName: hub, PrincipalArn: &arn}))(t).AccessEntry
	for _, e := range []*types.AccessEntry{made, got} {
		if *e.PrincipalArn != arn || *e.ClusterName != "hub" || *e.Username != "cluster1" || *e.Type != "STANDARD" || e.Tags["a"] != "b" ||
			!reflect.DeepEqual(e.KubernetesGroups, []string{"open-cluster-management:cluster1"}) || e.CreatedAt.Before(begin) {
			t.Errorf("entry %+v", e)
		}
	}
	changed := must(c.UpdateAccessEntry(t.Context(), &eks.UpdateAccessEntryInput{ClusterName: hub, PrincipalArn: &arn, KubernetesGroups: []string{"g"}}))(t).AccessEntry
	if !reflect.DeepEqual(changed.KubernetesGroups, []string{"g"}) || *changed.Username != "cluster1" {
		t.Errorf("entry %+v", changed)
	}
	changed = must(c.UpdateAccessEntry(t.Context(), &eks.UpdateAccessEntryInput{ClusterName: hub, PrincipalArn: &arn, KubernetesGroups: []string{}}))(t).AccessEntry
	if len(changed.KubernetesGroups) != 0 {
		t.Errorf("groups %v", changed.KubernetesGroups)
	}
	noError(t, nil, second(c.TagResource(t.Context(), &eks.TagResourceInput{ResourceArn: made.AccessEntryArn, Tags: map[string]string{"c": "d", "e": ""}})))
	noError(t, nil, second(c.UntagResource(t.Context(), &eks.UntagResourceInput{ResourceArn: made.AccessEntryArn, TagKeys: []string{"a", "e"}})))
	if tags := w.hub.AccessEntries(w.clusterARN)[arn].Tags; !reflect.DeepEqual(tags, map[string]string{"c": "d"}) {
		t.Errorf("tags %v", tags)
	}
	noError(t, nil, second(c.DeleteAccessEntry(t.Context(), &eks.DeleteAccessEntryInput{ClusterName: hub, PrincipalArn: &arn})))
	if left := w.hub.AccessEntries(w.clusterARN); len(left) != 0 {
		t.Errorf("left over: %v", left)
	}
}

func TestAccessEntry_ErrorsHaveSDKTypes(t *testing.T) {
	w := newWorld(t)
	c, arn, hub, missing, ctx := w.root.eks, w.createRole(t, "r"), aws.String("hub"), aws.String("missing"), t.Context()
	noError(t, nil, second(w.entry(t, w.root, arn, nil)))
	wantType[*types.ResourceInUseException](t, second(w.entry(t, w.root, arn, nil)))

	other := aws.String(w.createRole(t, "other"))
	for _, err := range []error{
		second(c.DescribeAccessEntry(ctx, &eks.DescribeAccessEntryInput{ClusterName: hub, PrincipalArn: other})),
		second(c.DescribeAccessEntry(ctx, &eks.DescribeAccessEntryInput{ClusterName: missing, PrincipalArn: &arn})),
		second(c.UpdateAccessEntry(ctx, &eks.UpdateAccessEntryInput{ClusterName: hub, PrincipalArn: other})),
		second(c.DeleteAccessEntry(ctx, &eks.DeleteAccessEntryInput{ClusterName: hub, PrincipalArn: other})),
		second(c.ListAccessEntries(ctx, &eks.ListAccessEntriesInput{ClusterName: missing})),
		second(c.CreateAccessEntry(ctx, &eks.CreateAccessEntryInput{ClusterName: missing, PrincipalArn: other})),
		second(c.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: missing})),
	} {
		wantType[*types.ResourceNotFoundException](t, err)
	}
	wantType[*types.NotFoundException](t, second(c.TagResource(ctx, &eks.TagResourceInput{ResourceArn: aws.String(w.clusterARN + "x"), Tags: map[string]string{"a": "b"}})))
	wantType[*types.BadRequestException](t, second(c.TagResource(ctx, &eks.TagResourceInput{ResourceArn: &w.clusterARN, Tags: map[string]string{}})))

	for _, principal := range []string{
		"", "r", arn + "x", "arn:aws:iam::" + hubID + ":role/path/r", "arn:aws:iam::" + hubID + ":root", "arn:aws:sts::" + hubID + ":assumed-role/r/s",
	} {
		err := second(w.entry(t, w.root, principal, nil))
		wantType[*types.InvalidParameterException](t, err)
		wantCode(t, err, "InvalidParameterException", "invalid principal")
	}
	for _, username := range []string{"system:node:a", "eks:a", "aws:a", "amazon:a", "iam:a", "a{{SessionName}}"} {
		err := second(w.entry(t, w.root, *other, func(in *eks.CreateAccessEntryInput) { in.Username = &username }))
		wantType[*types.InvalidParameterException](t, err)
	}
	for _, prefix := range []string{"system:", "eks:", "aws:", "amazon:", "iam:"} {
		err := second(w.entry(t, w.root, *other, func(in *eks.CreateAccessEntryInput) {
			in.KubernetesGroups = []string{"open-cluster-management:a", prefix + "open-cluster-management:a"}
		}))
		wantCode(t, err, "InvalidParameterException", "The kubernetes group name "+prefix+"open-cluster-management:a is invalid, it cannot start with "+prefix)
	}
	err := second(c.UpdateAccessEntry(ctx, &eks.UpdateAccessEntryInput{ClusterName: hub, PrincipalArn: &arn, Username: aws.String("system:a")}))
	wantType[*types.InvalidParameterException](t, err)

	w.hub.AddCluster(Cluster{Name: "old", AuthenticationMode: "CONFIG_MAP"})
	err = second(c.ListAccessEntries(ctx, &eks.ListAccessEntriesInput{ClusterName: aws.String("old")}))
	wantType[*types.InvalidRequestException](t, err)
}

func TestAccessEntry_CreateIsIdempotent(t *testing.T) {
	w := newWorld(t)
	arn := w.createRole(t, "r")
	with := func(username string) func(*eks.CreateAccessEntryInput) {
		return func(in *eks.CreateAccessEntryInput) {
			in.ClientRequestToken, in.Username = aws.String("token"), &username
		}
	}
	first := must(w.entry(t, w.root, arn, with("a")))(t)
	again := must(w.entry(t, w.root, arn, with("a")))(t)
	if *first.AccessEntry.AccessEntryArn != *again.AccessEntry.AccessEntryArn {
		t.Errorf("entries %s and %s", *first.AccessEntry.AccessEntryArn, *again.AccessEntry.AccessEntryArn)
	}
	wantType[*types.ResourceInUseException](t, second(w.entry(t, w.root, arn, with("b"))))
}

func TestAccessEntries_PaginationAndRegions(t *testing.T) {
	w := newWorld(t)
	w.hub.AddCluster(Cluster{Name: "hub", Region: "eu-west-1"})
	var want []string
	for i := range 5 {
		arn := w.createRole(t, fmt.Sprint("r", i))
		noError(t, nil, second(w.entry(t, w.root, arn, nil)))
		want = append(want, arn)
	}
	list := func(region string) (got []string) {
		pages := eks.NewListAccessEntriesPaginator(w.root.eks, &eks.ListAccessEntriesInput{ClusterName: aws.String("hub"), MaxResults: aws.Int32(2)})
		for pages.HasMorePages() {
			got = append(got, must(pages.NextPage(t.Context(), func(o *eks.Options) { o.Region = region }))(t).AccessEntries...)
		}
		return got
	}
	if got := list(region); !reflect.DeepEqual(got, want) {
		t.Errorf("entries %v, want %v", got, want)
	}
	if got := list("eu-west-1"); got != nil {
		t.Errorf("entries of the other region %v", got)
	}
	wantCode(t, second(w.root.eks.ListAccessEntries(t.Context(), &eks.ListAccessEntriesInput{ClusterName: aws.String("hub"), MaxResults: aws.Int32(101)})),
		"InvalidParameterException", "less than or equal to 100")
}

func TestAccessEntry_PermissionsOnClusterAndEntry(t *testing.T) {
	w := newWorld(t)
	arn := w.createRole(t, "r")
	onCluster := w.user(t, w.hub, "cluster", allow("eks:*", w.clusterARN))
	entries := "arn:aws:eks:" + region + ":" + hubID + ":access-entry/hub/role/" + hubID + "/r/*"
	onEntries := w.user(t, w.hub, "entries", allow("eks:*", entries))
	wantCode(t, second(w.entry(t, onEntries, arn, nil)), "AccessDeniedException", "eks:CreateAccessEntry on resource: "+w.clusterARN)
	wantCode(t, second(w.entry(t, onCluster, arn, func(in *eks.CreateAccessEntryInput) { in.Tags = map[string]string{"a": "b"} })), "AccessDeniedException", "eks:TagResource")
	noError(t, nil, second(w.entry(t, onCluster, arn, nil)))
	in := &eks.DeleteAccessEntryInput{ClusterName: aws.String("hub"), PrincipalArn: &arn}
	wantCode(t, second(onCluster.eks.DeleteAccessEntry(t.Context(), in)), "AccessDeniedException", "eks:DeleteAccessEntry")
	noError(t, nil, second(onEntries.eks.DeleteAccessEntry(t.Context(), in)))
}

// TestAccessEntry_ConditionKeys verifies that the condition keys are those of AWS's service authorization reference.
func TestAccessEntry_ConditionKeys(t *testing.T) {
	w := newWorld(t)
	ours, other := w.createRole(t, "ocm-hub-1"), w.createRole(t, "admin")
	when := func(name, action, condition string) clients {
		return w.user(t, w.hub, name, fmt.Sprintf(
			`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":%q,"Resource":"*","Condition":{%s}}]}`, action, condition))
	}
	c := when("create", "eks:CreateAccessEntry", `"ArnLike":{"eks:principalArn":"arn:aws:iam::`+hubID+`:role/ocm-hub-*"},
		"StringEquals":{"eks:accessEntryType":"STANDARD"},"StringLikeIfExists":{"eks:username":"c:*"},
		"ForAllValues:StringLike":{"eks:kubernetesGroups":"c:*"}`)
	refused := func(err error) { t.Helper(); wantCode(t, err, "AccessDeniedException", "eks:CreateAccessEntry") }
	refused(second(w.entry(t, c, other, nil)))
	refused(second(w.entry(t, c, ours, func(in *eks.CreateAccessEntryInput) { in.Username = aws.String("admin") })))
	refused(second(w.entry(t, c, ours, func(in *eks.CreateAccessEntryInput) { in.KubernetesGroups = []string{"c:1", "masters"} })))
	refused(second(w.entry(t, c, ours, func(in *eks.CreateAccessEntryInput) { in.Type = aws.String("EC2_LINUX") })))
	noError(t, nil, second(w.entry(t, c, ours, func(in *eks.CreateAccessEntryInput) {
		in.Username, in.KubernetesGroups = aws.String("c:1"), []string{"c:1"}
	})))
	noError(t, nil, second(w.entry(t, w.root, other, nil)))
	d := when("delete", "eks:*AccessEntry", `"ArnEquals":{"eks:principalArn":"`+ours+`"},"StringEquals":{"eks:clusterName":"hub"}`)
	for principal, works := range map[string]bool{other: false, ours: true} {
		_, err := d.eks.DeleteAccessEntry(t.Context(), &eks.DeleteAccessEntryInput{ClusterName: aws.String("hub"), PrincipalArn: &principal})
		if works {
			noError(t, nil, err)
		} else {
			wantCode(t, err, "AccessDeniedException", "eks:DeleteAccessEntry")
		}
	}
}
