// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IERC20 {
    function transfer(address to, uint256 amount) external returns (bool);
}

/// @title ModularAccount
/// @notice Account of one owner that is extended by modules, whose code runs in the account's context.
contract ModularAccount {
    address public owner;
    uint256 public modulesRun;
    mapping(bytes32 => address) public modules;

    event ModuleInstalled(bytes32 indexed key, address module);
    event ModuleRemoved(bytes32 indexed key);
    event ModuleRun(address indexed module);
    event Paid(address indexed to, uint256 amount);

    error NotOwner();
    error NotAContract(address module);
    error UnknownModule(bytes32 key);
    error TransferFailed();

    modifier onlyOwner() {
        if (msg.sender != owner) revert NotOwner();
        _;
    }

    constructor(address owner_) {
        owner = owner_;
    }

    receive() external payable {}

    /// @notice Registers a module under a key.
    function installModule(bytes32 key, address module) external onlyOwner {
        if (module.code.length == 0) revert NotAContract(module);
        modules[key] = module;
        emit ModuleInstalled(key, module);
    }

    /// @notice Removes the module registered under a key.
    function removeModule(bytes32 key) external onlyOwner {
        if (modules[key] == address(0)) revert UnknownModule(key);
        delete modules[key];
        emit ModuleRemoved(key);
    }

    /// @notice Runs a module in the context of this account.
    /// @param module Contract whose code is run.
    /// @param data Call data for the module.
    /// @return result What the module returned.
    function runModule(address module, bytes calldata data) external returns (bytes memory result) {
        if (module.code.length == 0) revert NotAContract(module);
        modulesRun += 1;
        emit ModuleRun(module);
        bool ok;
        (ok, result) = module.delegatecall(data);
        _bubble(ok, result);
    }

    /// @notice Calls another contract with ether of this account.
    function callContract(address target, uint256 value, bytes calldata data)
        external
        onlyOwner
        returns (bytes memory result)
    {
        if (target.code.length == 0) revert NotAContract(target);
        bool ok;
        (ok, result) = target.call{value: value}(data);
        _bubble(ok, result);
    }

    /// @notice Sends ether of this account.
    function pay(address payable to, uint256 amount) external onlyOwner {
        emit Paid(to, amount);
        (bool ok, ) = to.call{value: amount}("");
        if (!ok) revert TransferFailed();
    }

    /// @notice Sends tokens of this account.
    function payToken(IERC20 token, address to, uint256 amount) external onlyOwner {
        if (!token.transfer(to, amount)) revert TransferFailed();
    }

    /// @dev Reverts with the callee's own reason when a call failed.
    function _bubble(bool ok, bytes memory result) private pure {
        if (!ok) {
            assembly {
                revert(add(result, 32), mload(result))
            }
        }
    }
}
