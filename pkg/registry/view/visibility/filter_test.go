// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"context"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/clusterhub/clusterhub/pkg/apis/view"
	"github.com/clusterhub/clusterhub/pkg/rbac"
	"github.com/clusterhub/clusterhub/pkg/registry/view/position"
)

// A handler may give a watch up without stopping it, and without having read anything: its context is all that ends.
func TestFilter_ThatNobodyReadsEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := watch.NewFake()
		f := &filter{reader: &Reader{Resource: position.Resource{Split: position.SplitName}}, source: source, who: someone("ann"), visible: seen{Names: rbac.Names{All: true}}, result: make(chan watch.Event), stop: make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		go f.run(ctx)
		source.Add(&view.ClusterSetMember{ObjectMeta: metav1.ObjectMeta{Name: "c1.a"}}) // returns when run has taken it
		synctest.Wait()
		if source.IsStopped() {
			t.Fatal("the watch of the cache was stopped before the end")
		}
		cancel()
		synctest.Wait()
		if !source.IsStopped() {
			t.Error("the watch of the cache goes on")
		}
	})
}
