// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storagespace refuses writes, dry runs too, while there is no room for them. What deletes objects has to go on then:
// it is the way out.
package storagespace

import (
	"context"
	"io"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apiserver/pkg/admission"

	"github.com/clusterhub/clusterhub/pkg/storagefull"
)

// PluginName is the name of the plugin in flags and metrics.
const PluginName = "StorageSpace"

// WantsRoom is implemented by what is told whether there is room for writes.
type WantsRoom interface{ SetRoom(room func() error) }

// Register adds the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) { return New(), nil })
}

// Plugin refuses what makes objects or changes them, while there is no room. Finalizers are removed by updates, so objects
// that are being deleted can be changed. It does not see a deletion, which needs little room or none.
type Plugin struct {
	*admission.Handler
	room func() error
}

var (
	_ admission.ValidationInterface = &Plugin{}
	_ WantsRoom                     = &Plugin{}
)

// New returns the plugin. Without being told, there is always room.
func New() *Plugin {
	return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update), room: func() error { return nil }}
}

// SetRoom implements WantsRoom.
func (p *Plugin) SetRoom(room func() error) { p.room = room }

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	full := p.room()
	if full == nil || a.GetOperation() == admission.Create && a.GetSubresource() != "" { // such as a token, which is not stored
		return nil
	}
	if a.GetOperation() == admission.Update {
		if old, err := meta.Accessor(a.GetOldObject()); err == nil && old.GetDeletionTimestamp() != nil {
			return nil
		}
	}
	return storagefull.NewError(full.Error())
}
