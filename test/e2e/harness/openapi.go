// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"encoding/json"
	"testing"
)

// OpenAPIModel describes a type in an OpenAPI document.
type OpenAPIModel struct {
	Description string
	Properties  map[string]struct{ Description string }
}

// OpenAPIModels returns the models in the OpenAPI document of a group and version, which the front lists shortly after it serves the group.
func OpenAPIModels(t *testing.T, groupVersion string) map[string]OpenAPIModel {
	t.Helper()
	index := struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}{}
	Eventually(t, "the OpenAPI document of "+groupVersion, func(context.Context) (bool, error) {
		data, err := Kubectl(t, "", "get", "--raw", "/openapi/v3")
		if err == nil {
			err = json.Unmarshal([]byte(data), &index)
		}
		return index.Paths["apis/"+groupVersion].ServerRelativeURL != "", err
	})
	document := struct {
		Components struct{ Schemas map[string]OpenAPIModel }
	}{}
	data := MustKubectl(t, "", "get", "--raw", index.Paths["apis/"+groupVersion].ServerRelativeURL)
	if err := json.Unmarshal([]byte(data), &document); err != nil {
		t.Fatal(err)
	}
	return document.Components.Schemas
}
