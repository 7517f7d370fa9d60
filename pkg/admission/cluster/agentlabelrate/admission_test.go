// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agentlabelrate

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"

	at "github.com/clusterhub/clusterhub/pkg/admission/admissiontest"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/pkg/registration/agentlimit"
)

func agentOf(cluster, agent string) user.Info {
	return &user.DefaultInfo{Name: registration.ClusterUser(cluster, agent),
		Groups: []string{registration.ManagedClustersGroup, registration.ClusterGroup(cluster)}}
}

func awsAgentOf(cluster string) user.Info {
	return &user.DefaultInfo{Name: "x", Groups: []string{registration.AWSManagedClustersGroup, registration.AWSGroup(cluster)}}
}

func plugin() *Plugin {
	p := New()
	p.Changes = agentlimit.New(agentlimit.Limit{PerSecond: 0.1, Burst: 10})
	return p
}

// relabels returns writes of a label by a user. Each write changes the value.
func relabels(name, subresource string, by user.Info) func(value int) at.Request {
	return func(value int) at.Request {
		return at.Request{Object: at.Cluster(name, "k", fmt.Sprint(value)), Old: at.Cluster(name, "k", fmt.Sprint(value-1)), Subresource: subresource, By: by}
	}
}

func TestValidate_FlappingLabelIsLimited(t *testing.T) {
	for what, writes := range map[string][]func(int) at.Request{
		"an agent":         {relabels("c1", "", agentOf("c1", "a"))},
		"an AWS agent":     {relabels("c1", "", awsAgentOf("c1"))},
		"by a subresource": {relabels("c1", "label", agentOf("c1", "a"))},
		// The limit is for the cluster whose labels change.
		"an addon of all": {relabels("c1", "", &user.DefaultInfo{Name: registration.ClusterUser("addon", "x"), Groups: []string{"x"}})},
		// A cluster can have agents of many names.
		"by all ways": {relabels("c1", "", agentOf("c1", "a")), relabels("c1", "status", agentOf("c1", "b")), relabels("c1", "label", awsAgentOf("c1"))},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, passed := plugin(), 0
				for i := range 1000 {
					_, err := at.Validate(t, p, writes[i%len(writes)](i).Attributes())
					seconds, late := apierrors.SuggestsClientDelay(err)
					switch {
					case err == nil:
						passed++
					case !apierrors.IsTooManyRequests(err) || !late || seconds != 10 || !strings.Contains(err.Error(), "cluster c1 change its labels"):
						t.Fatalf("%v, after %d s", err, seconds)
					}
					time.Sleep(100 * time.Millisecond)
				}
				// This is 100 seconds.
				if passed < 19 || passed > 20 {
					t.Errorf("%d changes passed, want 10 at once and 10 later", passed)
				}
			})
		})
	}
}

func TestValidate_OtherChangesAreNotLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := plugin()
		agent := agentOf("c1", "a")
		dry := relabels("c1", "", agent)(1)
		dry.DryRun = true
		others := map[string]at.Request{
			"a status":          {Object: at.Cluster("c1", "k", "v"), Old: at.Cluster("c1", "k", "v"), Subresource: "status", By: agent},
			"a dry run":         dry,
			"an admin":          relabels("c1", "", at.User)(1),
			"a new cluster":     {Object: at.Cluster("c1", "k", "v"), By: agent},
			"no labels, no map": {Object: at.Cluster("c1"), Old: at.Cluster("c1"), By: agent},
		}
		try := func() {
			t.Helper()
			for what, r := range others {
				for range 20 {
					if _, err := at.Validate(t, p, r.Attributes()); err != nil {
						t.Fatalf("%s: %v", what, err)
					}
				}
			}
		}
		try()
		for i := range 11 {
			if _, err := at.Validate(t, p, relabels("c1", "", agent)(i).Attributes()); (err == nil) != (i < 10) {
				t.Errorf("change %d: %v", i+1, err)
			}
		}
		try()
		if _, err := at.Validate(t, p, relabels("c2", "", agentOf("c2", "a"))(1).Attributes()); err != nil {
			t.Errorf("another cluster: %v", err)
		}
	})
}

func TestPlugin_RequiresLimit(t *testing.T) {
	if New().ValidateInitialization() == nil || plugin().ValidateInitialization() != nil {
		t.Error("want an error without a limit, and none with one")
	}
}
