// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"encoding/json"
	"fmt"
	"os"

	localserver "github.com/clusterhub/clusterhub/pkg/local/server"
)

func readJSON(file string, into any) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s is damaged: %w", file, err)
	}
	return nil
}

func writeJSON(file string, from any) error {
	data, err := json.MarshalIndent(from, "", "  ")
	if err != nil {
		return err
	}
	return localserver.WriteFile(file, append(data, '\n'))
}
