// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package publishing

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/admission/edge/services"
	api "github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/edge"
	"github.com/clusterhub/clusterhub/pkg/edge/archive"
	"github.com/clusterhub/clusterhub/pkg/edge/model"
)

const (
	// mostArchives and mostBytes are how many archives are read for one pattern, and how many bytes these have packed. Of others, what their
	// status says is known.
	mostArchives, mostBytes = 32, 4 << 20
	// mostServices is how many services are looked at for one policy or pattern: versions, each for several architectures. Each service that
	// is named has the same part of it, and at least leastServices.
	mostServices, leastServices = 128, 4
	// mostReaders is how many requests read archives at a time. One that is as large as may be takes 128 MiB while it is read.
	mostReaders = 2
)

var spec = field.NewPath("spec")

// lint is what the constraints of a policy surprise with.
func lint(policy *api.Policy, path *field.Path, said []string) []string {
	if policy == nil {
		return nil
	}
	return edge.Surprises(policy.Constraints, path.Child("constraints").String(), said)
}

func ofNode(node *api.EdgeNodeSpec) []string {
	return slices.Concat(lint(&node.Policy, spec, nil), lint(node.Deployment, spec.Child("deployment"), nil), lint(node.Management, spec.Child("management"), nil))
}

// ofService reads the archive again: the status has only a part of what its author is told. What cannot be read is refused elsewhere.
func (p *Plugin) ofService(ctx context.Context, s *api.EdgeService) []string {
	said := p.ofArchive(ctx, s)
	return append(said, lint(s.Spec.Policy, spec.Child("policy"), said)...)
}

func (p *Plugin) ofArchive(ctx context.Context, s *api.EdgeService) []string {
	if s.Spec.ClusterDeployment == nil || !p.enter(ctx) {
		return nil
	}
	defer p.leave()
	read, err := archive.ReadPacked(s.Spec.ClusterDeployment.OperatorYamlArchive)
	if err != nil {
		return nil
	}
	converted := &v1alpha1.EdgeServiceSpec{}
	if err := v1alpha1.Convert_edge_EdgeServiceSpec_To_v1alpha1_EdgeServiceSpec(&s.Spec, converted, nil); err != nil {
		return nil
	}
	service := model.Service(s.Namespace, converted, &read.Contents)
	return service.Warnings()
}

func ofPolicy(ctx context.Context, finder *services.Finder, namespace string, d *api.DeploymentPolicy) ([]string, error) {
	var wanted v1alpha1.DeploymentPolicySpec
	if err := v1alpha1.Convert_edge_DeploymentPolicySpec_To_v1alpha1_DeploymentPolicySpec(&d.Spec, &wanted, nil); err != nil {
		return nil, err
	}
	named := services.OfPolicy(namespace, &d.Spec)
	found, warnings, err := find(ctx, finder, namespace, named)
	if err != nil {
		return nil, err
	}
	known, err := stored(found.services)
	if err != nil {
		return nil, err
	}
	// Constraints that cannot be read are refused by validation.
	if analysis, err := edge.Analyze(model.Policy(namespace, d.Name, &wanted, known)); err == nil {
		if text := analysis.Warning(); text != "" {
			warnings = append(warnings, text)
		}
	}
	return slices.Concat(warnings, lint(&d.Spec.Policy, spec, warnings), model.WithoutEffect(wanted.Service.ServiceVersions, spec.Child("service").String(), false)), nil
}

func (p *Plugin) ofPattern(ctx context.Context, finder *services.Finder, namespace string, d *api.DeploymentPattern) (faults, warnings []string, err error) {
	var wanted v1alpha1.DeploymentPatternSpec
	if err := v1alpha1.Convert_edge_DeploymentPatternSpec_To_v1alpha1_DeploymentPatternSpec(&d.Spec, &wanted, nil); err != nil {
		return nil, nil, err
	}
	found, warnings, err := find(ctx, finder, namespace, services.OfPattern(namespace, &d.Spec))
	if err != nil {
		return nil, nil, err
	}
	known, err := stored(found.services)
	if err != nil {
		return nil, nil, err
	}
	if len(d.Spec.Services) > 1 {
		// What two services both have, only their archives say.
		if left := p.readArchives(ctx, found, known); left > 0 {
			warnings = append(warnings, fmt.Sprintf("the archives of %d services were not looked into: whether they can be deployed together shows when they are", left))
		}
	}
	pattern := model.Pattern(namespace, &wanted, known)
	faults, more := pattern.Check()
	warnings = append(warnings, more...)
	for i := range wanted.Services {
		warnings = append(warnings, model.WithoutEffect(wanted.Services[i].ServiceVersions, spec.Child("services").Index(i).String(), true)...)
	}
	return faults, warnings, nil
}

// candidates are services that are there and may be used, each once.
type candidates struct {
	services []api.EdgeService
	// place of each among those of its name: the first versions come first.
	place []int
}

// find warns of services of the own namespace of which there is no version. Others without one are refused (serviceuse).
func find(ctx context.Context, finder *services.Finder, namespace string, named []services.Wanted) (found candidates, warnings []string, err error) {
	seen, left := map[[2]string]bool{}, 0
	for i := range named {
		w := &named[i]
		list, _, err := finder.Find(ctx, w)
		if err != nil {
			return found, nil, err
		}
		if len(list) == 0 && w.Namespace == namespace {
			warnings = append(warnings, fmt.Sprintf("%s: there is no EdgeService of %s in this namespace in any of these versions for this architecture yet: nothing of it is deployed until there is one",
				w.Path, w.URL))
		}
		slices.SortStableFunc(list, func(a, b api.EdgeService) int {
			return cmp.Compare(slices.Index(w.Versions, a.Spec.Version), slices.Index(w.Versions, b.Spec.Version))
		})
		for place, s := range list {
			key := [2]string{s.Namespace, s.Name}
			switch {
			case seen[key]:
			case place >= max(leastServices, mostServices/len(named)):
				left++
			default:
				seen[key] = true
				found.services, found.place = append(found.services, s), append(found.place, place)
			}
		}
	}
	if left > 0 {
		warnings = append(warnings, fmt.Sprintf("%d services were not looked at, of so many versions and architectures: name fewer versions, or an architecture", left))
	}
	return found, warnings, nil
}

// stored are services with what their status says of the archives.
func stored(found []api.EdgeService) ([]edge.Service, error) {
	known := make([]edge.Service, len(found))
	for i := range found {
		converted := &v1alpha1.EdgeService{}
		if err := v1alpha1.Convert_edge_EdgeService_To_v1alpha1_EdgeService(&found[i], converted, nil); err != nil {
			return nil, err
		}
		known[i] = model.StoredService(converted)
	}
	return known, nil
}

// readArchives puts what is in the archives in the place of what is known of them, and returns how many it did not read.
func (p *Plugin) readArchives(ctx context.Context, found candidates, known []edge.Service) (left int) {
	if !p.enter(ctx) {
		return len(known)
	}
	defer p.leave()
	// The first version of each service before all second ones.
	order := make([]int, len(known))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(found.place[a], found.place[b]) })
	archives, size := 0, 0
	for _, i := range order {
		deployment := found.services[i].Spec.ClusterDeployment
		if deployment == nil {
			continue
		}
		packed := deployment.OperatorYamlArchive
		archives++
		size += len(packed)
		if archives > mostArchives || size > mostBytes || ctx.Err() != nil {
			left++
			continue
		}
		if read, err := archive.ReadPacked(packed); err == nil {
			known[i].Contents = &read.Contents
		}
	}
	return left
}

// enter waits until archives may be read, and is false if the request has ended before.
func (p *Plugin) enter(ctx context.Context) bool {
	select {
	case p.reading <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (p *Plugin) leave() { <-p.reading }
