// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// alone lists the tests that do not run in parallel with other tests of their folder, and the folders in which no test does, each with the reason.
// TestAlone_ListsSerialTests verifies that all other tests do.
var alone = map[string]string{
	// test/e2e/access
	"TestAccessScheduler_UnavailableClusters": "counts the retries of all schedulers of its process, and measures how soon a request is granted",
	"TestAccessScheduler_LateProfile":         "counts the retries of all schedulers of its process, and measures how soon a request is granted",

	// test/e2e/apiserver
	"TestAgents_FloodDoesNotSlowOthers": "compares how long requests take with and without load",
	"TestCertificate_IsAlwaysVerified":  "gives an API of the shared hub a CA that is not its own, so that the API fails until it is replaced",

	// test/e2e/detached
	"detached": "its tests share a management cluster with one hub-operator, and compare all that is there before and after",

	// test/e2e/docs
	"docs": "its tests have not been tried in parallel: each starts all that `make up` can have",

	// test/e2e/permissions
	"TestAgents_SharedRoleReachesOwnClusterOnly": "gives all agents of the shared hub more rights, and compares all clusters and sets before and after",
	"TestPermissions_OneUserDoesNotSlowOthers":   "compares how long requests take with and without load",
	"TestPermissions_ChangesApplyImmediately":    "measures how soon a change of roles counts",

	// test/e2e/sets
	"TestDefaultSets_ExistAndAreRecreated": "deletes the sets default and global, which have the clusters of all tests",

	// test/e2e/ui
	"TestUsable_ReadsOnlyWhatItShows": "makes more clusters than a list of the page shows, which come before those of others",

	// hack/charts/e2e
	"TestDocs_OperatingPage":   "installs a hub on the shared cluster, which can have one",
	"TestRefused":              "waits for namespaces of the shared cluster, which wait for the hubs that others install and remove",
	"TestTakeOver":             "installs a hub on the shared cluster, which can have one",
	"TestTakeOver_BesideAgent": "installs a hub on the shared cluster, which can have one",
	"TestUI":                   "makes the namespace of the hub on the shared cluster, which others install and remove",
	"TestUninstall_UnblocksNamespaceDeletion": "installs a hub on the shared cluster, which can have one",
	"TestWays": "installs hubs on the shared cluster, which can have one",
}

// owners lists the tests that start their own hubs and plain clusters, each with the reason why neither the shared hub nor a lent hub is sufficient.
var owners = map[string]string{
	// test/e2e/access
	"TestAccessToken": "needs audit logs and logs of all requests, and ends the cluster",

	// test/e2e/apiserver
	"TestAdmission_FrontWithoutMutatingPolicies": "needs flags of kube-apiserver",
	"TestDoors_HubWithSingleCA":                  "needs the certificates of an earlier version",

	// test/e2e/detached
	"TestDetached_HubWithSeveralPodsSurvivesLoss": "makes a detached hub of a plain cluster",
	"TestDetached_BareClustersServeAsHubs":        "makes detached hubs of plain clusters",

	// test/e2e/doctor
	"TestDoctor_Hub": "breaks the hub",

	// test/e2e/edgeagents
	"TestScenarios": "needs a cluster for the agents beside the shared hub, and no other test of the folder does",

	// test/e2e/install
	"TestTopology_SurvivesLossOfOneEach": "kills processes of a hub that has several of each",

	// test/e2e/monitoring
	"TestTraces_SpanWholeHub": "needs flags of kube-apiserver and hub-apiserver for traces",

	// test/e2e/registration
	"TestHandover_NextLeaderCompletes": "needs audit logs of kube-apiserver",

	// hack/charts/e2e
	"TestDocs_HelmPage": "installs the charts on plain clusters",
	"TestHubAndCluster": "installs the charts on plain clusters",
}

// begun has the tests for which parallel was called.
var begun sync.Map

// folder returns the name of the folder of the running tests.
var folder = sync.OnceValue(func() string {
	dir, _ := os.Getwd()
	return filepath.Base(dir)
})

// parallel runs a test in parallel with others from the first call on, unless alone lists it. Subtests are not affected.
func parallel(t *testing.T) {
	t.Helper()
	if strings.Contains(t.Name(), "/") || alone[t.Name()] != "" || alone[folder()] != "" {
		return
	}
	if _, again := begun.LoadOrStore(t, true); !again {
		t.Parallel()
	}
}
