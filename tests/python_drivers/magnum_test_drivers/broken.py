"""Drivers that are imported and cannot be made, or say nonsense of themselves."""
from magnum_test_drivers.folders import FolderDriver


class NeedsKubeconfig(FolderDriver):
    def __init__(self):
        raise FileNotFoundError('/nowhere/kubeconfig')


class ProvidesNonsense(FolderDriver):
    @property
    def provides(self):
        return ['kubernetes']
