// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package renewal_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/agent/agenttest"
	"github.com/clusterhub/clusterhub/pkg/agent/identity"
	"github.com/clusterhub/clusterhub/pkg/agent/identity/csr"
	"github.com/clusterhub/clusterhub/pkg/agent/rights"
	"github.com/clusterhub/clusterhub/pkg/agent/state"
	"github.com/clusterhub/clusterhub/pkg/agent/task"
	"github.com/clusterhub/clusterhub/pkg/agent/tasks/renewal"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// renewing runs a session with nothing but the task, on a hub that accepts every certificate for 10 hours. ended receives the error of the session.
func renewing(w *agenttest.World) (ended <-chan error) {
	w.T.Helper()
	s := w.Session()
	store := w.Store()
	w.Grant(state.Rights)
	_, key := agenttest.Certificate(w.T, "")
	_, err := store.Update(w.T.Context(), func(to *state.State) {
		*to = s.State
		to.Key, to.Cert = key, w.SignKey(key, registration.ClusterUser(agenttest.ClusterName, agenttest.AgentName))
	})
	if err != nil {
		w.T.Fatal(err)
	}
	driver := csr.New()
	own, err := driver.New(identity.Agent{Store: store, Random: s.Random, Report: func(metav1.Condition) {}})
	if err != nil {
		w.T.Fatal(err)
	}
	renews := renewal.New(own, driver.Rights())
	w.Grant(rights.Sum(state.Rights, renews.Rights))
	end := make(chan error, 1)
	go func() { end <- s.Run(agenttest.Quiet(w.T), []task.Task{renews}) }()
	return end
}

// expectRunning fails the test if the session has ended.
func expectRunning(t *testing.T, ended <-chan error) {
	t.Helper()
	select {
	case err := <-ended:
		t.Fatalf("it has ended early: %v", err)
	default:
	}
}

func TestRenewal_SessionEndsOnNewCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := agenttest.NewWorld(t)
		ended := renewing(w)
		agenttest.Pass(8*time.Hour + time.Minute)
		expectRunning(t, ended)
		before := w.State()
		w.Approve()
		if err := <-ended; err != nil {
			t.Errorf("it has ended with: %v", err)
		}
		if after := w.State(); string(after.Cert) == string(before.Cert) || string(after.Key) != string(before.NextKey) {
			t.Error("the certificate is the one of before, or for another key than it has asked for")
		}
	})
}

func TestRenewal_SessionEndsWithoutIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := renewing(agenttest.NewWorld(t))
		agenttest.Pass(9 * time.Hour)
		expectRunning(t, ended)
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "expired") {
			t.Errorf("it has ended with: %v", err)
		}
	})
}
