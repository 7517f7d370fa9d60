// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package edge has the commands deploycheck and edge import.
package edge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/edge/model"
	"github.com/clusterhub/clusterhub/pkg/inspect/answers"
)

// nothingDeployed is the exit code if the checked policy or pattern deploys nothing.
const nothingDeployed = 2

type deployCheckOptions struct {
	edgeFiles
	in              kit.NamespaceFlag
	policy, pattern string
	nodes           []string
	all             bool
	facts           nodeFlags
	out             *kit.Table
}

// NewDeployCheckCommand returns the command deploycheck.
func NewDeployCheckCommand(opts *kit.Options) *cobra.Command {
	o := &deployCheckOptions{edgeFiles: edgeFiles{Options: opts, nodesByFile: true}, in: kit.NamespaceFlag{Options: opts}, out: kit.NewTable()}
	cmd := &cobra.Command{
		Use:   "deploycheck (-f FILE... | --policy NAME | --pattern NAME)",
		Short: "Show what a policy or a pattern would deploy to which edge nodes, and why not to the others",
		Long: "deploycheck prints for each edge node which version of a service would be deployed to which namespace, or why none would be. It " +
			"changes nothing.\n\n" +
			"Without a hub: if the files have nodes, and neither --node nor --all is set. Then the files must have everything that is evaluated: a policy or a " +
			"pattern, its services, and the nodes. No requests are sent.\n\n" +
			"With the hub: in all other cases. Then the policy or pattern, and its services, are read from the files if they have them, and otherwise from the hub. " +
			"The nodes are those of --node, or with --all, which is the default, all nodes that the namespace reaches and that you may get. This needs the permission " +
			"to create deploychecks in the namespace.\n\n" +
			"The exit code is 0 if something would be deployed to at least one node, 2 if nothing would be, and 1 after an error.",
		Example: kit.Example(`
# Without a hub: a policy, its service and nodes, from a folder
kubectl hub deploycheck -f shop/
# The same with files of Open Horizon
kubectl hub deploycheck -f policy.json -f service.json -f node.json --node-arch amd64 --node-namespace blue --node-scope namespace
# On the hub: what a policy that does not exist yet would do to all nodes, or to two
kubectl hub deploycheck -f policy.yaml -n shop
kubectl hub deploycheck -f policy.yaml -n shop --node store-1,store-2 -o wide
# On the hub: why is this policy not deployed?
kubectl hub deploycheck --policy web -n shop -o wide`),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	fs := cmd.Flags()
	o.in.AddTo(cmd, "the policy or pattern, and of objects of the files that have none")
	o.addTo(cmd, "EdgeNodes, EdgeServices, DeploymentPolicies and DeploymentPatterns, or files of Open Horizon")
	fs.StringVar(&o.policy, "policy", "", "Policy to evaluate: one of the files, if these have several, otherwise one of the hub.")
	fs.StringVar(&o.pattern, "pattern", "", "Pattern to evaluate, in the same way. All nodes are evaluated as if they had it.")
	fs.StringSliceVar(&o.nodes, "node", nil, "Nodes of the hub to evaluate, besides those of the files.")
	fs.BoolVar(&o.all, "all", false, "Evaluate all nodes of the hub that the namespace reaches, and none of the files. This is the default if the files have no nodes.")
	for flag, list := range map[string]func(context.Context, *kit.HubClient) ([]string, error){"policy": o.policyNames, "pattern": o.patternNames, "node": nodeNames} {
		kit.Must(cmd.RegisterFlagCompletionFunc(flag, o.CompletionFunc(list)))
	}
	o.facts.addTo(cmd)
	o.out.AddTo(cmd)
	cmd.MarkFlagsMutuallyExclusive("policy", "pattern")
	cmd.MarkFlagsMutuallyExclusive("node", "all")
	cmd.MarkFlagsOneRequired("filename", "policy", "pattern")
	return cmd
}

func (o *deployCheckOptions) run(ctx context.Context) error {
	if err := o.out.Validate(); err != nil {
		return err
	}
	if err := o.facts.validate(); err != nil {
		return err
	}
	namespace, err := o.in.Name()
	if err != nil {
		return err
	}
	q := &asked{namespace: cmp.Or(namespace, metav1.NamespaceDefault)}
	if len(o.files) > 0 {
		objects, err := o.read(q.namespace)
		if err != nil {
			return err
		}
		if err := o.sort(q, objects); err != nil {
			return err
		}
	}
	if err := q.choose(o.policy, o.pattern); err != nil {
		return err
	}
	if q.policy == nil && q.pattern == nil && o.policy == "" && o.pattern == "" {
		return errors.New("--filename: the files have no policy and no pattern: add one, or name one of the hub by --policy or --pattern")
	}
	if o.in.Value != "" && q.own() != "" && q.own() != o.in.Value {
		return fmt.Errorf("--namespace is %s, but the objects of the files are in the namespace %s: omit --namespace, or set it to that namespace", o.in.Value, q.own())
	}
	q.namespace = cmp.Or(q.own(), q.namespace)
	answer := o.offline
	if len(q.nodes) == 0 || len(o.nodes) > 0 || o.all {
		answer = o.ask
	}
	check, err := answer(ctx, q)
	if err != nil {
		return err
	}
	if err := o.print(check); err != nil {
		return err
	}
	if !check.Status.Deployable {
		return &command.Exit{Code: nothingDeployed}
	}
	return nil
}

// asked has the objects of the files.
type asked struct {
	namespace string
	policies  []*api.DeploymentPolicy
	patterns  []*api.DeploymentPattern
	services  []*api.EdgeService
	nodes     []*api.EdgeNode
	// policy or pattern is the one that is checked. Both are nil if it is stored in the hub.
	policy  *api.DeploymentPolicy
	pattern *api.DeploymentPattern
	// policyName or patternName is the name if it is stored in the hub.
	policyName, patternName string
}

// sort assigns the objects to the fields for their kinds. It returns an error for duplicates, and for objects that the hub would reject.
func (o *deployCheckOptions) sort(q *asked, objects []edgeObject) error {
	from, faults := map[string]string{}, []error{}
	for _, object := range objects {
		id := ""
		switch typed := object.Object.(type) {
		case *api.EdgeNode:
			if object.hzn != "" {
				o.facts.fill(typed)
			}
			id, q.nodes = "EdgeNode "+typed.Name, append(q.nodes, typed)
		case *api.EdgeService:
			typed.Namespace = cmp.Or(typed.Namespace, q.namespace)
			typed.Name = cmp.Or(typed.Name, serviceName(typed))
			id, q.services = "EdgeService "+typed.Namespace+"/"+typed.Name, append(q.services, typed)
		case *api.DeploymentPolicy:
			typed.Namespace = cmp.Or(typed.Namespace, q.namespace)
			id, q.policies = "DeploymentPolicy "+typed.Namespace+"/"+typed.Name, append(q.policies, typed)
		case *api.DeploymentPattern:
			typed.Namespace = cmp.Or(typed.Namespace, q.namespace)
			id, q.patterns = "DeploymentPattern "+typed.Namespace+"/"+typed.Name, append(q.patterns, typed)
		}
		if first, twice := from[id]; twice {
			return fmt.Errorf("--filename: %s is in both %s and %s: remove one of them", id, first, object.source)
		}
		from[id] = object.source
		dropped, err := checkEdgeObject(object.Object)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %s is not valid: %w", object.source, id, err))
		}
		for _, field := range dropped {
			o.Warn("%s: %s: %s is ignored: the hub sets it itself", object.source, id, field)
		}
	}
	return errors.Join(faults...)
}

// choose selects the policy or pattern that is checked.
func (q *asked) choose(policy, pattern string) error {
	byPolicy := slices.IndexFunc(q.policies, func(p *api.DeploymentPolicy) bool { return p.Name == policy })
	byPattern := slices.IndexFunc(q.patterns, func(p *api.DeploymentPattern) bool { return p.Name == pattern })
	switch {
	case policy != "" && byPolicy >= 0:
		q.policy = q.policies[byPolicy]
	case pattern != "" && byPattern >= 0:
		q.pattern = q.patterns[byPattern]
	case policy != "":
		q.policyName = policy
	case pattern != "":
		q.patternName = pattern
	case len(q.policies)+len(q.patterns) > 1:
		var names []string
		for _, p := range q.policies {
			names = append(names, "--policy "+p.Name)
		}
		for _, p := range q.patterns {
			names = append(names, "--pattern "+p.Name)
		}
		return fmt.Errorf("--filename: the files have %d policies and patterns, but only one is evaluated at a time: choose it by %s", len(names), kit.SomeNames(names))
	case len(q.policies) == 1:
		q.policy = q.policies[0]
	case len(q.patterns) == 1:
		q.pattern = q.patterns[0]
	}
	return nil
}

// own returns the namespace of the checked policy or pattern if it is in the files.
func (q *asked) own() string {
	switch {
	case q.policy != nil:
		return q.policy.Namespace
	case q.pattern != nil:
		return q.pattern.Namespace
	}
	return ""
}

// name returns the name of the checked policy or pattern.
func (q *asked) name() string {
	switch {
	case q.policy != nil:
		return q.policy.Name
	case q.pattern != nil:
		return q.pattern.Name
	}
	return q.policyName + q.patternName
}

// namedServices returns the services of the files that the policy or pattern names, or all services if it is stored in the hub. Other services do not affect
// the result.
func (q *asked) namedServices() []*api.EdgeService {
	var wanted []model.Wanted
	switch {
	case q.policy != nil:
		wanted = []model.Wanted{model.WantedByPolicy(q.namespace, &q.policy.Spec)}
	case q.pattern != nil:
		wanted = model.WantedByPattern(q.namespace, &q.pattern.Spec)
	default:
		return q.services
	}
	return slices.DeleteFunc(slices.Clone(q.services), func(s *api.EdgeService) bool {
		service := model.Service(s.Namespace, &s.Spec, nil)
		return !slices.ContainsFunc(wanted, func(w model.Wanted) bool { return w.Matches(&service) })
	})
}

// check returns the DeployCheck without services and nodes.
func (q *asked) check() *api.DeployCheck {
	c := &api.DeployCheck{TypeMeta: metav1.TypeMeta{APIVersion: api.SchemeGroupVersion.String(), Kind: "DeployCheck"}}
	c.Namespace, c.Name = q.namespace, q.name()
	c.Spec.PolicyName, c.Spec.PatternName = q.policyName, q.patternName
	if q.policy != nil {
		c.Spec.Policy = &q.policy.Spec
	}
	if q.pattern != nil {
		c.Spec.Pattern = &q.pattern.Spec
	}
	return c
}

// ask sends the check to the hub, page by page.
func (o *deployCheckOptions) ask(ctx context.Context, q *asked) (*api.DeployCheck, error) {
	check := q.check()
	for _, s := range q.namedServices() {
		check.Spec.Services = append(check.Spec.Services, api.CheckedService{Org: s.Namespace, Spec: s.Spec})
	}
	switch {
	case len(q.nodes) > 0 && o.all:
		o.Warn("the nodes of the files are not evaluated: --all selects those of the hub")
	default:
		for _, n := range q.nodes {
			check.Spec.Nodes = append(check.Spec.Nodes, api.CheckedNode{Name: n.Name, Spec: n.Spec, Status: n.Status})
		}
	}
	check.Spec.NodeNames = o.nodes
	const page = 1000
	check.Spec.Limit = page
	h, err := o.Hub()
	if err != nil {
		return nil, err
	}
	var answer *api.DeployCheck
	for {
		got, err := h.Clusters.EdgeV1alpha1().DeployChecks(q.namespace).Create(ctx, check, metav1.CreateOptions{})
		if err != nil {
			return nil, explainRefusal(err, q)
		}
		if answer == nil {
			answer = got
		} else {
			answer.Status.Nodes = append(answer.Status.Nodes, got.Status.Nodes...)
		}
		if got.Status.Continue == "" {
			break
		}
		// The nodes are in the order of their names. Without this check, a server that repeats a page would cause an endless loop.
		if got.Status.Continue <= check.Spec.Continue {
			return nil, fmt.Errorf("the hub repeatedly returns the page after %q: report this as a bug of the hub", got.Status.Continue)
		}
		check.Spec.Continue = got.Status.Continue
	}
	status := answer.Status
	status.Continue = ""
	answer = q.check()
	answer.Status = status
	return answer, nil
}

// explainRefusal adds what to do to an error of the hub.
func explainRefusal(err error, q *asked) error {
	switch {
	case answers.IsMissing(err, "deploychecks"), answers.IsMissing(err, "deploymentpolicies"), answers.IsMissing(err, "deploymentpatterns"):
		// A server that does not find a different object for a request names the resource of the request.
		return fmt.Errorf("there is no policy or pattern %s in the namespace %s: kubectl get dpol,dpat -n %[2]s shows all", q.name(), q.namespace)
	case apierrors.IsNotFound(err) && !strings.Contains(err.Error(), `"`):
		return fmt.Errorf("the hub does not serve deploychecks of %s: its version does not support edge nodes. With nodes in the files, no hub is needed",
			api.SchemeGroupVersion)
	}
	return err
}
