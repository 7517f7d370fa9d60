// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifestsize limits the size of the manifests of works, and of the templates of replica sets, from which works are created.
package manifestsize

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"

	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
)

const (
	// PluginName is the name of the plugin in flags and metrics.
	PluginName = "ManifestWorkSize"
	// DefaultMost is the default limit for manifests in bytes. It is upstream's limit.
	DefaultMost = 512_000
	// MinMost is the smallest value of the flag: it allows a small object.
	MinMost = 1_024
	// GreatestMost is the largest value of the flag. A work that also has the largest status (512,000 bytes) has 96 KiB left for other fields within
	// the limit of ObjectSize, which is lower than etcd's.
	GreatestMost = 700_000
	// maxNamed is the number of the largest manifests that an error names.
	maxNamed = 3
)

// CheckMost validates a value of the flag.
func CheckMost(most int) error {
	if most < MinMost || most > GreatestMost {
		return fmt.Errorf("must be from %d to %d bytes, so that the work with its status fits in etcd, not %d", MinMost, GreatestMost, most)
	}
	return nil
}

// Plugin rejects manifests whose total size is too large. Manifests that were stored under another limit may stay, and shrink.
type Plugin struct {
	*admission.Handler
	// Most is the largest total size of the manifests as JSON, in bytes.
	Most int
}

var _ admission.ValidationInterface = &Plugin{}

// New returns the plugin with the default.
func New() *Plugin {
	return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update), Most: DefaultMost}
}

// Validate implements admission.ValidationInterface. It checks every subresource, because any of them could change the object.
func (p *Plugin) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	w, old, err := permission.Objects[work.ManifestWork](a, work.Resource("manifestworks"))
	if err != nil {
		return err
	}
	if w != nil {
		return p.check(a, "ManifestWork", w.Spec.Workload.Manifests, old.Spec.Workload.Manifests, field.NewPath("spec"))
	}
	s, before, err := permission.Objects[work.ManifestWorkReplicaSet](a, work.Resource("manifestworkreplicasets"))
	if s == nil {
		return err
	}
	return p.check(a, "ManifestWorkReplicaSet", s.Spec.ManifestWorkTemplate.Workload.Manifests,
		before.Spec.ManifestWorkTemplate.Workload.Manifests, field.NewPath("spec", "manifestWorkTemplate"))
}

// check returns upstream's error, a 400, on which its clients rely.
func (p *Plugin) check(a admission.Attributes, kind string, manifests, old []work.Manifest, spec *field.Path) error {
	size := sizeOf(manifests)
	if size <= p.Most || size <= sizeOf(old) {
		return nil
	}
	refusal := apierrors.NewInvalid(schema.GroupKind{Group: work.GroupName, Kind: kind}, a.GetName(), field.ErrorList{field.Forbidden(spec.Child("workload", "manifests"), fmt.Sprintf(
		"the size of manifests is %d bytes which exceeds the %d limit: the largest are %s; divide them among several works",
		size, p.Most, largest(manifests)))})
	refusal.ErrStatus.Code, refusal.ErrStatus.Reason = http.StatusBadRequest, metav1.StatusReasonBadRequest
	return refusal
}

func sizeOf(manifests []work.Manifest) int {
	size := 0
	for i := range manifests {
		size += len(manifests[i].Raw)
	}
	return size
}

// largest names the largest manifests.
func largest(manifests []work.Manifest) string {
	indexes := make([]int, len(manifests))
	for i := range indexes {
		indexes[i] = i
	}
	slices.SortStableFunc(indexes, func(a, b int) int { return len(manifests[b].Raw) - len(manifests[a].Raw) })
	var names []string
	for _, i := range indexes[:min(maxNamed, len(indexes))] {
		name := ""
		m := metav1.PartialObjectMetadata{}
		if err := json.Unmarshal(manifests[i].Raw, &m); err == nil {
			name = " " + shortened(m.Kind) + " " + shortened(m.Namespace) + "/" + shortened(m.Name)
		}
		names = append(names, fmt.Sprintf("manifests[%d]%s (%d bytes)", i, name, len(manifests[i].Raw)))
	}
	return strings.Join(names, ", ")
}

func shortened(name string) string { return name[:min(len(name), validation.DNS1123LabelMaxLength)] }
