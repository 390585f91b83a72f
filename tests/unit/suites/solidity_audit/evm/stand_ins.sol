// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title Token
/// @notice A plain token of 18 decimals that anybody may mint.
contract Token {
    uint8 public constant decimals = 18;
    uint256 public totalSupply;
    mapping(address => uint256) public balanceOf;
    mapping(address => mapping(address => uint256)) public allowance;

    function mint(address to, uint256 amount) external {
        totalSupply += amount;
        balanceOf[to] += amount;
    }

    function approve(address spender, uint256 amount) external returns (bool) {
        allowance[msg.sender][spender] = amount;
        return true;
    }

    function transfer(address to, uint256 amount) external virtual returns (bool) {
        return _move(msg.sender, to, amount);
    }

    function transferFrom(address from, address to, uint256 amount) external virtual returns (bool) {
        allowance[from][msg.sender] -= amount;
        return _move(from, to, amount);
    }

    function _move(address from, address to, uint256 amount) internal virtual returns (bool) {
        balanceOf[from] -= amount;
        balanceOf[to] += amount;
        return true;
    }
}

/// @title FalseToken
/// @notice A token that returns false where others revert.
contract FalseToken is Token {
    function transfer(address to, uint256 amount) external override returns (bool) {
        return balanceOf[msg.sender] >= amount && _move(msg.sender, to, amount);
    }

    function transferFrom(address from, address to, uint256 amount) external override returns (bool) {
        if (balanceOf[from] < amount || allowance[from][msg.sender] < amount) return false;
        allowance[from][msg.sender] -= amount;
        return _move(from, to, amount);
    }
}

/// @title FeeToken
/// @notice A token that keeps one percent of what is moved.
contract FeeToken is Token {
    function _move(address from, address to, uint256 amount) internal override returns (bool) {
        balanceOf[from] -= amount;
        balanceOf[to] += amount - amount / 100;
        totalSupply -= amount / 100;
        return true;
    }
}

/// @title CallbackToken
/// @notice A token that tells a recipient with code, as ERC-777 does.
contract CallbackToken is Token {
    function _move(address from, address to, uint256 amount) internal override returns (bool) {
        balanceOf[from] -= amount;
        balanceOf[to] += amount;
        if (to.code.length > 0) {
            (bool told, ) = to.call(abi.encodeWithSignature("tokensReceived(address,uint256)", from, amount));
            told;
        }
        return true;
    }
}

/// @title Refuser
/// @notice Calls on behalf of its user and takes no ether back.
contract Refuser {
    function run(address to, bytes calldata data) external payable returns (bytes memory result) {
        bool ok;
        (ok, result) = to.call{value: msg.value}(data);
        if (!ok) {
            assembly {
                revert(add(result, 32), mload(result))
            }
        }
    }
}
