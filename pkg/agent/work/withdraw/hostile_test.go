// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package withdraw

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
)

// TestAttack_UnboundedRecord: a cluster that is not trusted has a record that names any number of objects, and rejects each request. Only
// a few objects are named, and after the timeout no more requests are sent.
func TestAttack_UnboundedRecord(t *testing.T) {
	record := func(objects int) WorkRecord {
		r := WorkRecord{Work: "w", object: &workv1.AppliedManifestWork{}}
		r.object.Name, r.object.UID = "h-w", "u"
		for i := range objects {
			r.object.Status.AppliedResources = append(r.object.Status.AppliedResources, workv1.AppliedManifestResourceMeta{
				Version: "v1", ResourceIdentifier: workv1.ResourceIdentifier{Resource: "configmaps", Namespace: "n", Name: fmt.Sprint("o", i)}})
		}
		return r
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var asked, last atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == last.Load() {
			cancel()
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no"}`)
	}))
	t.Cleanup(server.Close)
	cluster, err := New(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	_, err = cluster.End(ctx, record(1000), Delete)
	if !apierrors.IsForbidden(err) || len(err.Error()) > 4096 || !strings.Contains(err.Error(), "992 more objects of work w") {
		t.Errorf("after %d requests the error is %.5000v", asked.Load(), err)
	}
	asked.Store(0)
	last.Store(10)
	_, err = cluster.End(ctx, record(20_000), Keep)
	if err == nil || len(err.Error()) > 4096 || asked.Load() > 11 {
		t.Errorf("after %d requests the error is %.5000v", asked.Load(), err)
	}
}
