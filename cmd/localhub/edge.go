// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// edgeName is the cluster whose agents make edge nodes: one agent of the whole cluster, and those of two teams, which have one namespace each.
const edgeName = "london-1"

// edgeAgent is an agent of that cluster.
type edgeAgent struct {
	// name is the name of its node on the hub, and namespace its namespace.
	name, namespace string
	// user is the user who installs it, with permissions in that namespace alone. If it is empty, an admin of the cluster installs it.
	user string
	// purpose is a property that the owner of the node sets.
	purpose string
}

// edgeAgents has the teams of artifacts/examples/edge/cluster.
var edgeAgents = []edgeAgent{
	{name: edgeName, namespace: registration.AgentNamespace},
	{name: edgeName + "-baker-street", namespace: "baker-street", user: "ann", purpose: "shop"},
	{name: edgeName + "-oxford-street", namespace: "oxford-street", user: "ben", purpose: "shop"},
}

// hasEdge reports whether the hub has that cluster, from an earlier start.
func hasEdge(config localhub.Options) bool {
	_, err := os.Stat(filepath.Join(config.Dir, edgeName))
	return !errors.Is(err, fs.ErrNotExist)
}

func edgeExample(root string, name ...string) string {
	return filepath.Join(append([]string{root, "artifacts", "examples", "edge"}, name...)...)
}

// startEdge starts the cluster and its agents. The first time it installs the agents, which join the hub, and deploys services. Later it preserves
// the changes of users.
func startEdge(ctx context.Context, hub *localhub.Instance, config localhub.Options, root string) error {
	printLine("Starting cluster %s with edge nodes", edgeName)
	its := config.Cluster(edgeName)
	its.HubAgents = len(edgeAgents)
	cluster, err := localhub.Start(ctx, its)
	if err != nil {
		return fmt.Errorf("%s: %w", edgeName, err)
	}
	loaded := filepath.Join(cluster.Dir(), "joined")
	if _, err := os.Stat(loaded); err != nil {
		if err := installEdge(ctx, hub, cluster, root); err != nil {
			return err
		}
	}
	for i, agent := range edgeAgents {
		if err := startEdgeAgent(ctx, cluster, i, agent); err != nil {
			return err
		}
	}
	if _, err := os.Stat(loaded); err != nil {
		if err := deployEdge(ctx, hub, root); err != nil {
			return err
		}
		if err := os.WriteFile(loaded, nil, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// installEdge installs the agents, by the commands that users type, each as the user with the necessary permissions.
func installEdge(ctx context.Context, hub, cluster *localhub.Instance, root string) error {
	printLine("Installing an agent of the whole cluster, and the agents of their teams as the users ann and ben")
	if err := kubectl(ctx, cluster, "apply", "--server-side", "-f", edgeExample(root, "cluster")); err != nil {
		return err
	}
	way, err := prepareJoin(ctx, hub)
	if err != nil {
		return err
	}
	for _, agent := range edgeAgents {
		args := append([]string{"agent", "install", "--cluster-name", agent.name}, way.flags()...)
		if agent.user == "" {
			args = append(args, "--works=cluster-admin")
		} else {
			args = append(args, "--namespace", agent.namespace, "--namespace-scoped", "--as", agent.user)
			if err := awaitTeam(ctx, cluster, agent); err != nil {
				return err
			}
		}
		if _, err := kubectlHub(ctx, cluster, args...); err != nil {
			return err
		}
	}
	return nil
}

// awaitTeam waits until a cluster that has just started has the permissions of the team's user.
func awaitTeam(ctx context.Context, cluster *localhub.Instance, agent edgeAgent) error {
	for _, right := range []string{"get pods", "create deployments", "create rolebindings"} {
		args := append([]string{"auth", "can-i", "-n", agent.namespace, "--as", agent.user}, strings.Fields(right)...)
		var last error
		err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			last = kubectl(ctx, cluster, args...)
			return last == nil, nil
		})
		if err != nil {
			return errors.Join(err, last)
		}
	}
	return nil
}

// startEdgeAgent starts an agent with the flags of its Deployment, which no kubelet runs.
func startEdgeAgent(ctx context.Context, cluster *localhub.Instance, i int, agent edgeAgent) error {
	out, err := cluster.Kubectl(ctx, "get", "deployment", "hub-agent", "-n", agent.namespace, "--ignore-not-found", "-o",
		"jsonpath={.spec.template.spec.containers[0].args}").CombinedOutput()
	if err != nil {
		return fmt.Errorf("the agent in %s: %w: %s", agent.namespace, err, strings.TrimSpace(string(out)))
	}
	if len(out) == 0 {
		return nil // it has been uninstalled
	}
	var args []string
	if err := json.Unmarshal(out, &args); err != nil {
		return fmt.Errorf("the arguments of the agent in %s: %w", agent.namespace, err)
	}
	// It uses a free port of this machine, and the API server's address on this machine.
	args = slices.DeleteFunc(args, func(arg string) bool {
		return strings.HasPrefix(arg, "--health-probe-bind-address=") || strings.HasPrefix(arg, "--cluster-server-url=") || strings.HasPrefix(arg, "--cluster-ca-file=")
	})
	return cluster.StartHubAgentIn(ctx, i, agent.namespace, args...)
}

// deployEdge accepts the nodes on the hub, sets their properties, and deploys services to them.
func deployEdge(ctx context.Context, hub *localhub.Instance, root string) error {
	if err := kubectl(ctx, hub, "apply", "--server-side", "-f", edgeExample(root)); err != nil {
		return err
	}
	for _, agent := range edgeAgents {
		if _, err := kubectlHub(ctx, hub, "accept", "--clusters", agent.name, "--wait"); err != nil {
			return err
		}
		if err := kubectl(ctx, hub, "label", "--overwrite", "managedcluster", agent.name, "cluster.open-cluster-management.io/clusterset=stores"); err != nil {
			return err
		}
		if err := kubectl(ctx, hub, "wait", "--for=create", "edgenode/"+agent.name, "--timeout=2m"); err != nil {
			return err
		}
		if agent.purpose == "" {
			continue
		}
		if err := kubectl(ctx, hub, "patch", "edgenode", agent.name, "--type=merge", "-p",
			fmt.Sprintf(`{"spec":{"properties":[{"name":"purpose","value":%q}]}}`, agent.purpose)); err != nil {
			return err
		}
	}
	printLine("Waiting for the services")
	for policy, nodes := range map[string]int{"till": 2, "till-for-training": 1, "sensors": 1} {
		if err := kubectl(ctx, hub, "wait", "-n", "stores", "deploymentpolicy/"+policy, fmt.Sprintf("--for=jsonpath={.status.nodes.running}=%d", nodes),
			"--timeout=3m"); err != nil {
			return err
		}
	}
	return nil
}
