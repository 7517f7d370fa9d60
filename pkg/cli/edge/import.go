// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/inspect/answers"
)

// importManager is the manager of the fields that an import sets.
const importManager = "kubectl-hub-import"

// maxPointers is the largest number of policies and patterns for which an import prints a command.
const maxPointers = 3

// importOrder lists the kinds. Kinds that others refer to come first.
var importOrder = []string{"EdgeService", api.KindDeploymentPattern, api.KindDeploymentPolicy, "EdgeNode"}

type importOptions struct {
	edgeFiles
	in     kit.NamespaceFlag
	force  bool
	dryRun kit.DryRun
	out    *kit.Table
}

// NewImportCommand returns the command edge import.
func NewImportCommand(opts *kit.Options) *cobra.Command {
	o := &importOptions{edgeFiles: edgeFiles{Options: opts}, in: kit.NamespaceFlag{Options: opts}, out: kit.NewTable()}
	cmd := &cobra.Command{
		Use:   "import -f FILE...",
		Short: "Import node policies, services, deployment policies and patterns from files of Open Horizon",
		Long: "import reads files of Open Horizon's command line hzn, as they are written for it or as its lists show them, and applies their objects as EdgeNodes, " +
			"EdgeServices, DeploymentPolicies and DeploymentPatterns. It can be run again. What cannot be imported is listed for each file, on stderr.\n\n" +
			"With -o it prints the objects and sends nothing, and with --dry-run=client it prints only what it would apply. Both need no hub, and validate the objects by the rules of " +
			"the hub. This needs the permission to patch the objects, and to create those that do not exist.",
		Example: kit.Example(`
# Show the objects that the files become
kubectl hub edge import -f policy.json -f service.json -n shop -o yaml
# Have the hub check it, then apply it
kubectl hub edge import -f exported/ -n shop --organization "Acme Corp=acme" --dry-run=server
kubectl hub edge import -f exported/ -n shop --organization "Acme Corp=acme"
# A node policy, which has no name in its file
kubectl hub edge import -f node-policy.json --name store-1`),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.in.AddTo(cmd, "objects of files that name no organization")
	o.addTo(cmd, "files of Open Horizon")
	cmd.Flags().BoolVar(&o.force, "force-conflicts", false, "Also set fields that other managers own.")
	kit.Must(cmd.MarkFlagRequired("filename"))
	o.dryRun.AddTo(cmd)
	o.out.AddObjectTo(cmd)
	return cmd
}

func (o *importOptions) run(ctx context.Context) error {
	if err := o.out.Validate(); err != nil {
		return err
	}
	namespace, err := o.in.Name()
	if err != nil {
		return err
	}
	read, err := o.read(cmp.Or(namespace, metav1.NamespaceDefault))
	if err != nil {
		return err
	}
	objects, err := o.objects(read)
	if err != nil {
		return err
	}
	var c client.Client
	if sends := o.out.IsTable() && !o.dryRun.IsClient() || o.dryRun.Value == "server"; sends {
		h, err := o.Hub()
		if err != nil {
			return err
		}
		c, err = h.Client()
		if err != nil {
			return err
		}
	}
	var failed []error
	for _, object := range objects {
		if c != nil {
			if err := o.apply(ctx, c, object); err != nil {
				failed = append(failed, fmt.Errorf("%s: %w", idOf(object), err))
				continue
			}
		}
		if o.out.IsTable() {
			if _, err := fmt.Fprintln(o.Out, o.dryRun.Outcome(object.GetKind(), object.GetName(), "applied")); err != nil {
				return err
			}
		}
	}
	if !o.out.IsTable() && len(failed) == 0 {
		failed = append(failed, o.out.PrintObjects(o.Out, asOne(objects)))
	}
	if c != nil && o.dryRun.Value != "server" && len(failed) == 0 {
		o.pointToCheck(objects)
	}
	return errors.Join(failed...)
}

// pointToCheck prints the command that shows which nodes get what was applied.
func (o *importOptions) pointToCheck(objects []*unstructured.Unstructured) {
	var commands []string
	services := false
	for _, object := range objects {
		switch object.GetKind() {
		case api.KindDeploymentPolicy:
			commands = append(commands, fmt.Sprintf("kubectl hub deploycheck --policy %s -n %s", object.GetName(), object.GetNamespace()))
		case api.KindDeploymentPattern:
			commands = append(commands, fmt.Sprintf("kubectl hub deploycheck --pattern %s -n %s", object.GetName(), object.GetNamespace()))
		case "EdgeService":
			services = true
		}
	}
	if len(commands) == 0 && services {
		commands = []string{"kubectl hub deploycheck -f FILE, with a policy or pattern that deploys the service"}
	}
	for i, command := range commands {
		if i == maxPointers {
			o.Note("%d more policies and patterns can be checked so", len(commands)-i)
			break
		}
		o.Note("to see which nodes get it: %s", command)
	}
}

// objects returns the objects to apply. Objects come after those that they refer to.
func (o *importOptions) objects(read []edgeObject) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	from, faults := map[string]string{}, []error{}
	for _, r := range read {
		if r.hzn == "" {
			return nil, fmt.Errorf("%s: it is a manifest, not a file of Open Horizon: kubectl apply -f %[1]s applies it", r.source)
		}
		dropped, err := checkEdgeObject(r.Object)
		for _, field := range dropped {
			o.Note("%s: %s is ignored: the hub sets it itself", r.source, field)
		}
		object, convertErr := toApply(r.Object)
		if convertErr != nil {
			return nil, convertErr
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %s is not valid: %w", r.source, idOf(object), err))
		}
		if first, twice := from[idOf(object)]; twice {
			faults = append(faults, fmt.Errorf("%s is in both %s and %s: remove one of them, or give one another --name", idOf(object), first, r.source))
		}
		from[idOf(object)] = r.source
		objects = append(objects, object)
	}
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int {
		return cmp.Compare(slices.Index(importOrder, a.GetKind()), slices.Index(importOrder, b.GetKind()))
	})
	return objects, errors.Join(faults...)
}

// toApply returns an object without the fields that users do not set.
func toApply(o runtime.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, err
	}
	delete(content, "status")
	u := &unstructured.Unstructured{Object: content}
	if metadata, is := content["metadata"].(map[string]any); is {
		delete(metadata, "creationTimestamp")
	}
	return u, nil
}

func (o *importOptions) apply(ctx context.Context, c client.Client, object *unstructured.Unstructured) error {
	options := []client.ApplyOption{client.FieldOwner(importManager)}
	if o.force {
		options = append(options, client.ForceOwnership)
	}
	if o.dryRun.Value == "server" {
		options = append(options, client.DryRunAll)
	}
	err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), options...)
	if answers.IsMissing(err, "namespaces") {
		return fmt.Errorf("there is no namespace %s: create it, or set another with --namespace or --organization", object.GetNamespace())
	}
	return err
}

func idOf(o *unstructured.Unstructured) string {
	if o.GetNamespace() == "" {
		return o.GetKind() + " " + o.GetName()
	}
	return o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
}

// asOne returns the object, or a list of several.
func asOne(objects []*unstructured.Unstructured) runtime.Object {
	if len(objects) == 1 {
		return objects[0]
	}
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List"}}
	for _, o := range objects {
		list.Items = append(list.Items, *o)
	}
	return list
}
