// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"regexp"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/clusterhub/clusterhub/pkg/deploy"
)

// AgentImage is the name of the image of hub-agent.
const AgentImage = "clusterhub/hub-agent"

var (
	// taggable matches the tags of images.
	taggable = regexp.MustCompile(`^\w[\w.-]{0,127}$`)
	// pseudoVersion matches the versions that go assigns to commits without a release.
	pseudoVersion = regexp.MustCompile(`[.-][0-9]{14}-[0-9a-f]{12}$`)
)

// ImageOf returns the image that was built together with this program, or "" if the version is not known.
func ImageOf(name, version string) string {
	if version == UnknownVersion || !taggable.MatchString(version) || pseudoVersion.MatchString(version) {
		return ""
	}
	return name + ":" + version
}

// AgentFlag returns the value of a flag of the agent's container. A name that ends with = has a value.
func AgentFlag(deployment *appsv1.Deployment, name string) (value string, found bool) {
	for i := range deployment.Spec.Template.Spec.Containers {
		container := &deployment.Spec.Template.Spec.Containers[i]
		if container.Name != deploy.AgentName {
			continue
		}
		for _, arg := range container.Args {
			if rest, ok := strings.CutPrefix(arg, name); ok && (rest == "" || strings.HasSuffix(name, "=")) {
				value, found = rest, true
			}
		}
	}
	return value, found
}
