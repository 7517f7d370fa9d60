// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/clusterhub/clusterhub/pkg/apis/view"
	"github.com/clusterhub/clusterhub/pkg/registry/view/clustersetmember"
	"github.com/clusterhub/clusterhub/test/await"
)

// FuzzList: whatever continue token and version a user sends, the result has only members that the user may see, they are the same as an admin gets,
// pages return the same members, and mistakes are reported.
func FuzzList(f *testing.F) {
	h := twoSets(f)
	h.set("a.b", labelled("stage=prod"))
	h.set("a-b", labelled("region=apac"))
	h.front.allow("ann", "a", "a.b", "a-b", "none")
	r := h.replica()
	h.client(r, someone("ann")).awaitNames("c1.a-b", "c2.a-b", "c1.a.b", "c4.a.b", "c1.a", "c2.a")
	first := h.client(r, admin).list(limit(1))
	now := number(f, first.ResourceVersion)
	past := int64(number(f, first.ResourceVersion) - 1)

	for _, start := range []string{
		"", "a/c1\x00", "a/c2", "a/\x00", "a.b/c1\x00", "a-b/", "b/", "b/c1", "../visibility", "a/../b/c1", "/", "a", "\x00", "a/c1/x", "zz/",
	} {
		for _, limit := range []int64{0, 1, 3} {
			f.Add("", start, int64(now), limit, "", "")
		}
		f.Add("", start, past, int64(1), "", "")
		f.Add("", start, int64(-1), int64(2), "", "")
	}
	for _, version := range []string{"", "0", "1", first.ResourceVersion, "01", "-1", "+1", "x", " 1", "1e3", "18446744073709551615", "18446744073709551616"} {
		for _, match := range []metav1.ResourceVersionMatch{"", metav1.ResourceVersionMatchExact, metav1.ResourceVersionMatchNotOlderThan} {
			f.Add("", "", int64(0), int64(2), version, string(match))
		}
	}
	for _, token := range []string{
		first.Continue, "e30", "bnVsbA", "x", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MX0", first.Continue + "A", " ", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIvIn0",
	} {
		f.Add(token, "", int64(0), int64(1), "", "")
	}
	f.Fuzz(func(t *testing.T, token, start string, at, limit int64, version, match string) {
		if start != "" {
			// The key of a forged token: it has a path in it, or is not one of ours.
			made, err := clustersetmember.Resource.EncodeContinue(clustersetmember.Resource.All()+start, at)
			if err != nil {
				return
			}
			token = made
		}
		options := internalversion.ListOptions{
			Continue: token, Limit: limit, ResourceVersion: version, ResourceVersionMatch: metav1.ResourceVersionMatch(match),
		}
		// The API server validates these before. Future versions are waited for.
		if len(validation.ValidateListOptions(&options, true)) > 0 || limit < 0 {
			return
		}
		if v, err := strconv.ParseUint(version, 10, 64); err == nil && v > now {
			return
		}
		if _, v, err := clustersetmember.Resource.DecodeContinue(token); err == nil && v > int64(now) {
			return
		}
		list := func(who user.Info, options internalversion.ListOptions) (names []string, next string, err error) {
			ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
			defer cancel()
			answer, err := client{t, r, who}.r.List(as(ctx, who), &options)
			if err != nil {
				if status := apierrors.APIStatus(nil); !errors.As(err, &status) || status.Status().Code < 400 || status.Status().Code >= 500 {
					t.Errorf("%s: %+v is answered by %v", who.GetName(), options, err)
				}
				return nil, "", err
			}
			members := answer.(*view.ClusterSetMemberList)
			return namesOf(members), members.Continue, nil
		}
		shown, next, err := list(someone("ann"), options)
		if err != nil {
			return
		}
		if limit > 0 && len(shown) > int(limit) {
			t.Fatalf("%+v shows %v", options, shown)
		}
		// The rest of the pages.
		pages := slices.Clone(shown)
		for page := options; next != ""; {
			if len(pages) > 100 {
				t.Fatalf("%+v has no end: %v", options, pages)
			}
			page.Continue, page.ResourceVersion, page.ResourceVersionMatch = next, "", ""
			shown, next, err = list(someone("ann"), page)
			if err != nil {
				t.Fatalf("the next page of %+v: %v", options, err)
			}
			pages = append(pages, shown...)
		}
		options.Limit = 0
		whole, _, err := list(someone("ann"), options)
		if err == nil && !slices.Equal(whole, pages) {
			t.Errorf("%+v shows %v, and in pages %v", options, whole, pages)
		}
		all, _, err := list(admin, options)
		if err != nil {
			return
		}
		mine := slices.DeleteFunc(all, func(name string) bool { return strings.HasSuffix(name, ".b") && !strings.HasSuffix(name, ".a.b") })
		if !slices.Equal(pages, mine) {
			t.Errorf("%+v shows %v, and an admin sees %v of it", options, pages, mine)
		}
	})
}
