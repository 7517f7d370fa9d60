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
	// maxArchives is the largest number of archives that are read for one pattern, and maxBytes the sum of their packed sizes. Of others, only the
	// status is used.
	maxArchives, maxBytes = 32, 4 << 20
	// maxServices is the largest number of services that are read for one policy or pattern: versions, each for several architectures. It is divided
	// equally between the named services, each of which has at least minServices.
	maxServices, minServices = 128, 4
	// maxReaders is the largest number of requests that read archives concurrently. A request of the largest size takes 128 MiB.
	maxReaders = 2
)

var spec = field.NewPath("spec")

// lint returns warnings about the constraints of a policy.
func lint(policy *api.Policy, path *field.Path, said []string) []string {
	if policy == nil {
		return nil
	}
	return edge.ConstraintWarnings(policy.Constraints, path.Child("constraints").String(), said)
}

func ofNode(node *api.EdgeNodeSpec) []string {
	return slices.Concat(lint(&node.Policy, spec, nil), lint(node.Deployment, spec.Child("deployment"), nil), lint(node.Management, spec.Child("management"), nil))
}

// ofService reads the archive again: the status has only a part of the warnings for its author. An archive that cannot be read is rejected elsewhere.
func (p *Plugin) ofService(ctx context.Context, s *api.EdgeService) []string {
	said := p.ofArchive(ctx, s)
	return append(said, lint(s.Spec.Policy, spec.Child("policy"), said)...)
}

func (p *Plugin) ofArchive(ctx context.Context, s *api.EdgeService) []string {
	if s.Spec.ClusterDeployment == nil || !p.enter(ctx) {
		return nil
	}
	defer p.release()
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
	// Validation rejects constraints that cannot be parsed.
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
		// Only the archives show whether two services have the same objects.
		if left := p.readArchives(ctx, found, known); left > 0 {
			warnings = append(warnings, fmt.Sprintf("the archives of %d services were not checked: conflicts between them are only found when they are deployed", left))
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

// candidates are existing services that may be used, without duplicates.
type candidates struct {
	services []api.EdgeService
	// place has the position of each among those of its name: the first versions come first.
	place []int
}

// find warns about services of the same namespace of which no version exists. Services of other namespaces are rejected in that case (serviceuse).
func find(ctx context.Context, finder *services.Finder, namespace string, named []services.Wanted) (found candidates, warnings []string, err error) {
	seen, left := map[[2]string]bool{}, 0
	for i := range named {
		w := &named[i]
		list, _, err := finder.Find(ctx, w)
		if err != nil {
			return found, nil, err
		}
		if len(list) == 0 && w.Namespace == namespace {
			warnings = append(warnings, fmt.Sprintf("%s: this namespace has no EdgeService of %s in any of these versions for this architecture yet: it is not deployed until one exists",
				w.Path, w.URL))
		}
		slices.SortStableFunc(list, func(a, b api.EdgeService) int {
			return cmp.Compare(slices.Index(w.Versions, a.Spec.Version), slices.Index(w.Versions, b.Spec.Version))
		})
		for place, s := range list {
			key := [2]string{s.Namespace, s.Name}
			switch {
			case seen[key]:
			case place >= max(minServices, maxServices/len(named)):
				left++
			default:
				seen[key] = true
				found.services, found.place = append(found.services, s), append(found.place, place)
			}
		}
	}
	if left > 0 {
		warnings = append(warnings, fmt.Sprintf("%d services were not checked, because there are too many versions and architectures: name fewer versions, or an architecture", left))
	}
	return found, warnings, nil
}

// stored returns services with the facts that their status has about the archives.
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

// readArchives replaces these facts by the content of the archives, and returns the number of archives that it did not read.
func (p *Plugin) readArchives(ctx context.Context, found candidates, known []edge.Service) (left int) {
	if !p.enter(ctx) {
		return len(known)
	}
	defer p.release()
	// The first versions of all services come before any second one.
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
		if archives > maxArchives || size > maxBytes || ctx.Err() != nil {
			left++
			continue
		}
		if read, err := archive.ReadPacked(packed); err == nil {
			known[i].Contents = &read.Contents
		}
	}
	return left
}

// enter waits until archives may be read. It returns false if the request has ended before.
func (p *Plugin) enter(ctx context.Context) bool {
	select {
	case p.reading <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (p *Plugin) release() { <-p.reading }
