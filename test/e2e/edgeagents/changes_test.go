// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edgeagents

import (
	"strings"

	"github.com/clusterhub/clusterhub/pkg/edge"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// changes changes running services as users do.
func (w *world) changes() {
	w.service("moves", "1.0.0", "")
	p := policy{name: "moves", service: "moves", versions: oneVersion, clusterNamespace: "abc", constraints: []string{ofTheCluster}}
	w.write(p)
	w.placed(p.name, whole+" 1.0.0 abc Running")
	w.lands(p.service, "abc 1.0.0")

	w.Log("It goes to another namespace, which is made for it, and leaves nothing behind")
	p.clusterNamespace = "made"
	w.write(p)
	w.placed(p.name, whole+" 1.0.0 made Running")
	w.lands(p.service, "made 1.0.0")

	w.Log("The namespace stays when the service goes, with what others have put into it")
	harness.MustKubectlOf(w.T, w.cluster, "", "create", "configmap", "of-others", "-n", "made")
	w.mustAs(deployer, "", "delete", "deploymentpolicy", p.name, "-n", shop)
	w.lands(p.service)
	w.placed(p.name)
	harness.MustKubectlOf(w.T, w.cluster, "", "get", "configmap", "of-others", "-n", "made")

	w.Log("The owner of a node says what it is for")
	w.service("lab", "1.0.0", "")
	w.write(policy{name: "lab", service: "lab", versions: oneVersion, constraints: []string{"purpose == lab"}})
	w.judged("lab", 0, string(edge.PolicyConstraint)+"=3")
	w.owned(ofABC, "lab")
	w.placed("lab", ofABC+" 1.0.0 abc Running")
	w.lands("lab", "abc 1.0.0")
	if out, err := w.as(owner, "", "patch", "edgenode", ofXYZ, "--type=merge", "-p", `{"spec":{"properties":[{"name":"purpose","value":"lab"}]}}`); err == nil ||
		!strings.Contains(out, "forbidden") {
		w.Errorf("the owner of one node writes another: %v: %s", err, out)
	}
	w.owned(ofABC, "retail")
	w.placed("lab")
	w.lands("lab")

	w.Log("A version that is withdrawn is followed by the next one, and comes back")
	w.service("versions", "1.0.0", "")
	w.service("versions", "2.0.0", "")
	w.write(policy{name: "versions", service: "versions", versions: twoVersions, constraints: []string{retail}})
	w.lands("versions", "abc 2.0.0")
	w.mustAs(deployer, "", "delete", "edgeservice", serviceName("versions", "2.0.0"), "-n", shop)
	w.lands("versions", "abc 1.0.0")
	w.placed("versions", ofABC+" 1.0.0 abc Running")
	w.service("versions", "2.0.0", "")
	w.lands("versions", "abc 2.0.0")
	w.mustAs(deployer, "", "delete", "deploymentpolicy", "versions", "lab", "-n", shop)
	w.lands("versions")
}

// owned sets the property purpose of a node as its owner.
func (w *world) owned(node, purpose string) {
	w.Helper()
	w.mustAs(owner, "", "patch", "edgenode", node, "--type=merge", "-p", `{"spec":{"properties":[{"name":"purpose","value":"`+purpose+`"}]}}`)
}

// once deploys a service that two agents of one cluster could deploy to one namespace.
func (w *world) once() {
	w.service("once", "1.0.0", "")
	p := policy{name: "once", service: "once", versions: oneVersion, clusterNamespace: "abc"}
	w.write(p)
	w.judged(p.name, 1, string(edge.OtherClusterNamespace)+"=1", string(edge.ThereAlready)+"=1")
	w.placed(p.name, ofABC+" 1.0.0 abc Running")
	w.lands(p.service, "abc 1.0.0")

	w.Log("A second policy does not bring it there again, and the check says by what it is there")
	again := policy{name: "again", service: "once", versions: oneVersion, clusterNamespace: "abc", constraints: []string{ofTheCluster}}
	said, code := w.deployCheck(again, "-o", "wide")
	if code != 2 {
		w.Errorf("the check ends with %d", code)
	}
	harness.Contains(w.T, said, string(edge.ThereAlready), "shop/once")
	w.write(again)
	w.judged(again.name, 0, string(edge.OtherClusterNamespace)+"=1", string(edge.PolicyConstraint)+"=1", string(edge.ThereAlready)+"=1")

	w.Log("It has its turn when the first is gone")
	w.mustAs(deployer, "", "delete", "deploymentpolicy", p.name, "-n", shop)
	w.placed(again.name, whole+" 1.0.0 abc Running")
	w.lands(p.service, "abc 1.0.0")
	w.mustAs(deployer, "", "delete", "deploymentpolicy", again.name, "-n", shop)
	w.lands(p.service)
}
