// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/clusterhub/clusterhub/pkg/registration"
)

// upgradableFlag allows the hub to upgrade an agent.
const upgradableFlag = "upgradable"

func (o *joinOptions) addUpgradable(fs *pflag.FlagSet) {
	fs.BoolVar(&o.upgradable, upgradableFlag, false, "Let the hub upgrade the agent: works may set its image to another tag or digest of the repository of --image. Users who write works "+
		"on the hub then choose which image of that repository runs with the rights and the identity of the agent. A join without the flag ends this.")
}

func (o *joinOptions) validateUpgradable() error {
	switch {
	case !o.upgradable:
		return nil
	case o.detached.IsOutside():
		return fmt.Errorf("--%s is for an agent that runs on its cluster: the Klusterlet on the management cluster sets the image of this one", upgradableFlag)
	}
	repository, version, err := registration.SplitImage(o.image)
	if err == nil && (repository == "" || version == "") {
		err = errors.New("it has neither a tag nor a digest")
	}
	if err != nil {
		return fmt.Errorf("--image: --%s needs the repository of the image: %w", upgradableFlag, err)
	}
	return nil
}

// upgradeHint returns a sentence with the images that the hub may set. It returns "" if the hub may set none.
func (o *joinOptions) upgradeHint() string {
	repository, _, err := registration.SplitImage(o.image)
	if !o.upgradable || err != nil {
		return ""
	}
	return "\nThe hub may upgrade it to other images of " + repository + "."
}
